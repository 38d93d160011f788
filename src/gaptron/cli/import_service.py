"""A running service, as the target of `gaptron import`."""

from typing import Any

from gaptron.errors import SettingError
from gaptron.serve.import_batches import as_imports, as_model_info
from gaptron.serve.schemas import Imports, ModelInfo

try:
    import httpx
except ImportError:
    problem = "importing into a running service needs httpx: pip install '.[client]' in gaptron's source folder"
    raise SettingError(problem) from None

from gaptron.client.errors import ServiceError
from gaptron.client.messages import body_of, url_part

TIMEOUT = 60.0  # seconds; a batch is learned from before the response


class ServiceTarget:
    """A running service.

    Args:
        url: its address.
        model: the name of the model.
        key: a key with the role admin; None if the service has no keys.
    """

    def __init__(self, url: str, model: str, key: str | None) -> None:
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        self._client = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT)
        self._path = f"/v1/models/{url_part(model)}"

    def info(self) -> ModelInfo:
        """Describe the model."""
        return as_model_info(self._request("GET", self._path))

    def send(self, body: bytes) -> Imports:
        """Import a batch: the JSON text of an `Import`."""
        return as_imports(self._request("POST", self._path + "/import", body))

    def _request(self, method: str, path: str, content: bytes | None = None) -> dict[str, Any]:
        try:
            return body_of(self._client.request(method, path, content=content))
        except httpx.HTTPError as problem:
            raise ServiceError(f"the service cannot be reached: {problem}") from None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
