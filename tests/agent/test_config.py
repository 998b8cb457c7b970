"""Settings and keys: where they come from, and one sentence for what is wrong with them."""

import io
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from umbra_agent import config, key
from umbra_agent.errors import ConfigurationError

WORK = '[[handler]]\nkinds = ["work"]\nargv = ["cat"]\n'


def load(folder: Path, text: str, environment: Mapping[str, str] | None = None) -> config.Config:
    path = folder / "agent.toml"
    path.write_text(text)
    return config.load(path, {} if environment is None else environment)


def test_a_flag_is_above_the_environment_above_the_file_above_the_default(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text('[controller]\nurl = "http://127.0.0.1:1"\n')
    environment = {"UMBRA_URL": "http://127.0.0.1:2", "UMBRA_CONFIG": str(path)}
    assert config.load(None, environment, "http://127.0.0.1:3").url == "http://127.0.0.1:3"
    assert config.load(None, environment).url == "http://127.0.0.1:2"
    assert config.load(None, {"UMBRA_CONFIG": str(path)}).url == "http://127.0.0.1:1"
    assert config.load(None, {}).url == config.DEFAULT_URL


def test_the_example_is_a_configuration_and_names_every_setting(tmp_path: Path) -> None:
    found = load(tmp_path, config.EXAMPLE)
    assert (found.kinds, found.handlers[0].result) == (("example",), "stdout")
    uncommented = config.EXAMPLE.replace("\n# ", "\n")
    settings = [field.name for field in config.Config.__attrs_attrs__]
    for name in settings:
        assert name == "handlers" or f"{name} =" in uncommented


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[agnet]\n", "the file: there is no setting 'agnet'; the nearest is 'agent'."),
        ("[controller]\nulr = 1\n", "the nearest is 'url'"),
        (WORK + "resutl = 1\n", "[[handler]] 1: there is no setting 'resutl'"),
        ("handler = 1\n", "write [[handler]]"),
        ("agent = 1\n", "[agent] is a table"),
        ("[agent]\ndrain_s = nan\n", "from 0 to"),
        ("[agent]\nmax_jobs = 1001\n", "from 1 to 1000"),
        ("[agent]\nlease_seconds = 4\n", "from 5 to 3600"),
        ('[agent]\nstop_file = "a\\u0000b"\n', "stop_file: expected a text"),
        (WORK + WORK, "kind 'work' has two handlers"),
        (WORK + 'type = "ollama"\n', "expected command"),
        (WORK + 'result = "stderr"\n', "expected file or stdout"),
        (WORK + "permanent_exit_codes = [256]\n", "exit codes from 1 to 255"),
        (WORK + 'env = { "A=B" = "c" }\n', "is no variable"),
        (WORK + "env = { A = 1 }\n", "a table of texts"),
        (f'[[handler]]\nkinds = ["{"k" * 201}"]\nargv = ["cat"]\n', "at most 200 characters"),
        ('[controller]\nurl = "ftp://127.0.0.1"\n', "is no address"),
        ('[controller]\nurl = "http://127.0.0.1:99999"\n', "is no address"),
        ('[controller]\nurl = "http://[::1"\n', "is no address"),
        ('[controller]\nurl = "http://a:b@127.0.0.1"\n', "holds no password"),
        ('[controller]\nurl = "http://10.0.0.1"\n', "insecure = true"),
        ('[controller]\nurl = "http://localhost.example"\n', "insecure = true"),
    ],
)
def test_what_is_wrong_is_named_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        'url = "http://localhost:1"',
        'url = "http://127.8.8.8"',
        'url = "http://[::1]:1"',
        'url = "https://example.org/umbra"',
        'url = "http://example.org"\ninsecure = true',
    ],
)
def test_plain_http_stays_on_the_machine_unless_told(tmp_path: Path, text: str) -> None:
    load(tmp_path, f"[controller]\n{text}\n")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        config.load(tmp_path / "none.toml", {})
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        config.load(tmp_path / "latin.toml", {})


def test_the_key_leaves_the_environment_whichever_way_it_came() -> None:
    environment = {"UMBRA_NODE_KEY": "umn_a"}
    assert key.take(environment, io.StringIO("umn_b\n")) == "umn_b"
    assert environment == {}
    assert key.take({"UMBRA_NODE_KEY": " umn_a\n"}, None) == "umn_a"


def test_the_key_may_come_as_a_credential_of_systemd(tmp_path: Path) -> None:
    environment = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    with pytest.raises(ConfigurationError, match="There is no key"):
        key.take(environment, None)
    (tmp_path / key.CREDENTIAL).write_text("\n")
    with pytest.raises(ConfigurationError, match="is empty"):
        key.take(environment, None)
    (tmp_path / key.CREDENTIAL).write_text("umn_c\n")
    assert key.take(environment, None) == "umn_c"
    (tmp_path / key.CREDENTIAL).unlink()
    (tmp_path / key.CREDENTIAL).mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        key.take(environment, None)


@pytest.mark.parametrize("given", ["umn_a b", "umn_ä", "u" * 201, "umn_\x01"])
def test_a_key_that_is_none_is_refused_without_being_shown(given: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        key.take({"UMBRA_NODE_KEY": given}, None)
    assert given not in str(refused.value)


def test_jobs_inherit_nothing_that_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = ("UMBRA_NODE_KEY", "UMBRA_API_KEY", "UMBRA_DSN", "CREDENTIALS_DIRECTORY")
    for name in (*secret, "NOTIFY_SOCKET"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("UMBRA_OTHER", "fine")
    inherited = key.environment_of_jobs()
    assert "secret" not in inherited.values()
    assert inherited["UMBRA_OTHER"] == "fine"
    assert inherited["PATH"] == os.environ["PATH"]
