"""Flag, then variable, then file, then default; and one sentence for what makes no sense."""

import os
from pathlib import Path

import attrs
import pytest

from umbra_compute import config
from umbra_compute.config import ConfigurationError, Listen, Settings, load

HOME = {"HOME": "/home/me"}
LISTENS = [Listen("127.0.0.1", 8440), Listen("f", 1), Listen("v", 2), Listen("g", 3)]
FOLDERS = [Path("/var/lib/umbra-compute"), Path("/f"), Path("/v"), Path("/g")]
DEVICES = [Path("/dev/null"), Path("/dev/zero"), Path("/dev/full")]


def written(folder: Path, text: str) -> Path:
    path = folder / "umbra.toml"
    path.write_text(text)
    return path


PRECEDENCE = [  # setting, in the file, in the variable, as a flag; then default and the three
    ("dsn", "'f'", "v", "flag", [None, "f", "v", "flag"]),
    ("listen", "'f:1'", "v:2", "g:3", LISTENS),
    ("data_dir", "'/f'", "/v", "/g", FOLDERS),
    ("heartbeat_stale_s", "46", "47", "48.5", [45.0, 46.0, 47.0, 48.5]),
    ("heartbeat_interval_s", "16.5", "17", "18.5", [15.0, 16.5, 17.0, 18.5]),
    ("sweep_interval_s", "2", "3", "4.5", [1.0, 2.0, 3.0, 4.5]),
    ("cancel_grace_s", "0", "32", "33.5", [30.0, 0.0, 32.0, 33.5]),
    ("pool_size", "17", "18", "19", [16, 17, 18, 19]),
    ("log_format", "'json'", "console", "json", [None, "json", "console", "json"]),
    ("tls_cert", "'/dev/null'", "/dev/zero", "/dev/full", [None, *DEVICES]),
    ("tls_key", "'/dev/null'", "/dev/zero", "/dev/full", [None, *DEVICES]),
]


@pytest.mark.parametrize(("name", "in_file", "in_variable", "as_flag", "expected"), PRECEDENCE)
def test_a_flag_goes_before_a_variable_before_the_file_before_the_default(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    in_file: str,
    in_variable: str,
    as_flag: str,
    expected: list[object],
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(config, "_check_tls", lambda _: None)  # of the pair, one is given here
    path = written(tmp_path, f"{name} = {in_file}")
    variable = {**HOME, f"UMBRA_{name.upper()}": in_variable}
    found = [
        load({name: None}, HOME),
        load({name: None}, HOME, path),
        load({name: None}, variable, path),
        load({name: as_flag}, variable, path),
    ]
    assert [getattr(settings, name) for settings in found] == expected


def test_every_setting_has_its_row() -> None:
    assert [field.name for field in attrs.fields(Settings)] == sorted(
        (row[0] for row in PRECEDENCE), key=list(config._READERS).index
    )


def test_the_file_is_named_by_its_variable_unless_a_flag_names_another(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("pool_size = 3")
    environment = {**HOME, "UMBRA_CONFIG": str(written(tmp_path, "pool_size = 2"))}
    assert load({}, environment).pool_size == 2
    assert load({}, environment, other).pool_size == 3
    assert load({}, {**HOME, "UMBRA_CONFIG": "", "UMBRA_POOL_SIZE": ""}).pool_size == 16


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pool_sise = 3", "no setting 'pool_sise'; the nearest is 'pool_size'"),
        ("[server]\nport = 1", "no setting 'server'; the nearest is "),
        ("pool_size = '3'", "pool_size: expected a whole number from 1 to 500, not a text"),
        ("pool_size = true", "expected a whole number from 1 to 500, not true or false"),
        ("pool_size = 3.0", "expected a whole number from 1 to 500, not a fraction"),
        ("pool_size = 0", "expected a whole number from 1 to 500"),
        ("sweep_interval_s = nan", "sweep_interval_s: expected a number from 0.01 to 60"),
        ("sweep_interval_s = [1]", "expected a number from 0.01 to 60, not a list"),
        ("listen = 8440", "listen: expected a text, not a whole number"),
        ("listen = 2026-01-02", "listen: expected a text, not a time"),
        ("dsn = ''", "dsn: expected a text that is not empty"),
        ("data_dir = '~nobody-of-that-name/x'", "data_dir: the home folder that ~ names"),
        ("log_format = 'xml'", "log_format: expected json or console"),
        ("tls_cert = '/'", "tls_cert: / is not a file that can be read"),
        ("tls_cert = '/nowhere'", "tls_cert: /nowhere is not a file that can be read"),
        ("pool_size = ", "is no TOML"),
    ],
)
def test_what_a_file_gets_wrong_is_named_with_what_is_expected(
    tmp_path: Path, text: str, says: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as refused:
        load({}, HOME, path)
    assert says in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file or directory"):
        load({}, HOME, tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"dsn = '\xe9'")
    with pytest.raises(ConfigurationError, match="cannot be read: it is not UTF-8"):
        load({}, HOME, tmp_path / "latin.toml")


def test_a_flag_and_a_variable_are_named_when_they_are_wrong() -> None:
    with pytest.raises(ConfigurationError, match=r"^--pool-size: expected a whole number"):
        load({"pool_size": "many"}, HOME)
    with pytest.raises(ConfigurationError, match=r"^UMBRA_LISTEN: expected HOST:PORT"):
        load({}, {**HOME, "UMBRA_LISTEN": "8440"})


@pytest.mark.parametrize("secret", ["dsn = ['hunter2']", "pool_size = 'hunter2'", "hunter2"])
def test_no_value_is_repeated_for_it_may_be_a_password(tmp_path: Path, secret: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load({}, HOME, written(tmp_path, secret))
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(Settings(dsn="postgresql://me:hunter2@there/db"))


@pytest.mark.parametrize("variable", ["UMBRA_DNS", "UMBRA_DATADIR", "UMBRA_POOLSIZE"])
def test_a_misspelt_variable_does_not_start_another_database(variable: str) -> None:
    with pytest.raises(ConfigurationError, match=f"no variable {variable}; the nearest is UMBRA_"):
        load({}, {**HOME, variable: "1"})


@pytest.mark.parametrize(
    "variable",
    ["UMBRA_TEST_DSN", "UMBRA_URL", "UMBRA_API_KEY", "UMBRA_NODE_KEY", "UMBRA_JOB_ID", "DSN"],
)
def test_variables_of_other_programs_pass(variable: str) -> None:
    assert load({}, {**HOME, variable: "1"}).dsn is None


def test_certificate_and_key_go_together(tmp_path: Path) -> None:
    cert = written(tmp_path, "")
    with pytest.raises(ConfigurationError, match="go together"):
        load({"tls_cert": str(cert)}, HOME)
    settings = load({"tls_cert": str(cert), "tls_key": str(cert)}, HOME)
    assert (settings.tls_cert, settings.tls_key) == (cert, cert)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("localhost:65535", "localhost", 65535),
        ("[::1]:8440", "::1", 8440),
        ("[0:0::1]:80", "::1", 80),
    ],
)
def test_an_address_reads_as_it_is_written(text: str, host: str, port: int) -> None:
    listen = Listen.parse(text)
    assert (listen.host, listen.port) == (host, port)
    assert Listen.parse(str(listen)) == listen


NO_ADDRESSES = """
 : :80 host host: host:65536 host:-1 host:٣ ::1 ::1:80 [::1] [::1:80 [host]:80 []:80 host:999999999
"""


@pytest.mark.parametrize("text", ["", *NO_ADDRESSES.split()])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Listen.parse(text)


@pytest.mark.parametrize(
    ("uid", "environment", "folder"),
    [
        (0, {"HOME": "/root", "XDG_DATA_HOME": "/xdg"}, "/var/lib/umbra-compute"),
        (7, HOME, "/home/me/.local/share/umbra-compute"),
        (7, {**HOME, "XDG_DATA_HOME": "/xdg"}, "/xdg/umbra-compute"),
        (7, {**HOME, "XDG_DATA_HOME": ""}, "/home/me/.local/share/umbra-compute"),
        (7, {**HOME, "XDG_DATA_HOME": "relative"}, "/home/me/.local/share/umbra-compute"),
    ],
)
def test_the_data_lies_where_such_data_lies(
    monkeypatch: pytest.MonkeyPatch, uid: int, environment: dict[str, str], folder: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert load({}, environment).data_dir == Path(folder)
