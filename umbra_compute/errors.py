"""Every refusal: a stable code and one sentence that says what to do.

HTTP statuses are not here; http/errors.py gives each class one.
"""

from typing import ClassVar
from uuid import UUID

Fault = tuple[str, str]
"""Where and what: ("$.devices[0].kind", "expected one of cpu, gpu_integrated, gpu_discrete")."""


class UmbraError(Exception):
    """Superclass of all refusals. Never raised itself."""

    code: ClassVar[str]


# -- the request itself


class InvalidBody(UmbraError):
    """The body is not what the route takes."""

    code = "invalid_body"

    def __init__(self, *faults: Fault) -> None:
        super().__init__("The body is not valid: errors names each bad field.")
        self.faults = faults


class InvalidQuery(UmbraError):
    """The query string is not what the route takes."""

    code = "invalid_query"

    def __init__(self, *faults: Fault) -> None:
        super().__init__("The query is not valid: errors names each bad parameter.")
        self.faults = faults


class MalformedJson(UmbraError):
    """The body is no JSON at all, or JSON that two readers would read differently."""

    code = "malformed_json"

    def __init__(self, *faults: Fault) -> None:
        super().__init__("The body must be JSON in UTF-8: errors says where it is not.")
        self.faults = faults


class UnsupportedMediaType(UmbraError):
    """The body is declared as something other than JSON."""

    code = "unsupported_media_type"

    def __init__(self, given: str) -> None:
        super().__init__(f"Send the body as application/json, not as {given}.")


class TooLarge(UmbraError):
    """The body is over the route's limit."""

    code = "too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"The body may have at most {limit_bytes} bytes: send less at a time.")


class RouteNotFound(UmbraError):
    """No route has this path."""

    code = "not_found"

    def __init__(self, path: str) -> None:
        super().__init__(f"There is nothing at {path}: see /openapi.json for the routes.")


class MethodNotAllowed(UmbraError):
    """The path exists, for other methods."""

    code = "method_not_allowed"

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"{method} is not for this path: use {allowed}.")
        self.allowed = allowed


# -- the caller


class Unauthorized(UmbraError):
    """No key, an unknown key, a revoked or expired one: all the same to whoever asks."""

    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__("Send a valid key as 'Authorization: Bearer KEY'.")


class MissingScope(UmbraError):
    """The key is good, and not for this."""

    code = "missing_scope"

    def __init__(self, scope: str) -> None:
        super().__init__(f"This key lacks the scope {scope}: use one that has it.")


class ScopeNotHeld(UmbraError):
    """A key may not be given more than its maker holds."""

    code = "scope_not_held"

    def __init__(self, scope: str) -> None:
        super().__init__(f"Your key lacks the scope {scope}, so it cannot give it to another key.")


class RateLimited(UmbraError):
    """Too many failed attempts with one prefix or from one address."""

    code = "rate_limited"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"Too many refused attempts: try again in {retry_after_s} s.")
        self.retry_after_s = retry_after_s


# -- things that are not there. Another tenant's id and a made-up id get the same answer.


class JobNotFound(UmbraError):
    """No such job in the caller's organization."""

    code = "job_not_found"

    def __init__(self, job_id: UUID | str) -> None:
        super().__init__(f"There is no job {job_id}.")


class NodeNotFound(UmbraError):
    """No such node in the caller's organization."""

    code = "node_not_found"

    def __init__(self, node_id: UUID | str) -> None:
        super().__init__(f"There is no node {node_id}.")


class ModelNotFound(UmbraError):
    """No model of that slug in the caller's organization."""

    code = "model_not_found"

    def __init__(self, slug: str) -> None:
        super().__init__(f"There is no model {slug}: PUT /v1/models/{slug} registers it.")


class CredentialNotFound(UmbraError):
    """No such credential on that node."""

    code = "credential_not_found"

    def __init__(self, credential_id: UUID | str) -> None:
        super().__init__(f"There is no credential {credential_id} on this node.")


class KeyNotFound(UmbraError):
    """No such API key in the caller's organization."""

    code = "key_not_found"

    def __init__(self, key_id: UUID | str) -> None:
        super().__init__(f"There is no key {key_id}.")


# -- the state of things


class LeaseLost(UmbraError):
    """The lease does not hold the job: it expired, was ended, or never did."""

    code = "lease_lost"

    def __init__(self, job_id: UUID, lease_id: UUID) -> None:
        super().__init__(f"Lease {lease_id} does not hold job {job_id}: stop the work on it.")


class IdempotencyMismatch(UmbraError):
    """The idempotency key belongs to a job with another body."""

    code = "idempotency_mismatch"

    def __init__(self, key: str, job_id: UUID) -> None:
        super().__init__(
            f"Idempotency key {key!r} was used for job {job_id} with another body: "
            "send that body again, or use another key."
        )


class NodeNameTaken(UmbraError):
    """Another node of the organization has this name."""

    code = "node_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"A node named {name} exists already: choose another name.")


class NodeHasLeases(UmbraError):
    """Retiring a node that still holds leases."""

    code = "node_has_leases"

    def __init__(self, name: str, live: int) -> None:
        super().__init__(
            f"Node {name} holds {live} leases: drain it, wait until it is idle, then retire it."
        )


class NodeRetired(UmbraError):
    """The node was retired, which is final."""

    code = "node_retired"

    def __init__(self, name: str) -> None:
        super().__init__(f"Node {name} is retired: add a new node instead.")


class OrganizationNameTaken(UmbraError):
    """Another organization has this name."""

    code = "organization_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"An organization named {name} exists already: choose another name.")


class OnlineIsEarned(UmbraError):
    """A node is online because it spoke, not because somebody said so."""

    code = "online_is_earned"

    def __init__(self) -> None:
        super().__init__(
            "A node becomes online by its heartbeat only: set provisioning or offline, "
            "and its next heartbeat lifts it."
        )


# -- the service


class DatabaseUnavailable(UmbraError):
    """PostgreSQL cannot be reached, or refuses to write."""

    code = "database_unavailable"

    def __init__(self) -> None:
        super().__init__("The database is away: try again in a moment.")


class SchemaNotCurrent(UmbraError):
    """The database has not had every migration of this release."""

    code = "schema_not_current"

    def __init__(self, pending: int) -> None:
        super().__init__(f"{pending} migrations are to be applied: run umbra-compute migrate.")


class ShuttingDown(UmbraError):
    """This controller is stopping."""

    code = "shutting_down"

    def __init__(self) -> None:
        super().__init__("This controller is stopping: try again, at another one if there is one.")
