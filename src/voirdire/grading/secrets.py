"""Keys and passwords: how they are recognised, and how they are kept out of everything that is written.

A secret comes from the environment and goes to the provider, nowhere else. Two rules: a study file that
holds one is refused, and whatever a provider sends back is scrubbed before it is stored or shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from voirdire.errors import UsageError

GONE = "[secret removed]"
SHORTEST = 8  # characters; a shorter value stands in ordinary text too often to be taken out of it

# ``key`` and ``token`` alone are secrets; ``prompt_cache_key`` and ``stop_token`` are not.
_NAMES = re.compile(
    r"key|token|(?:.*_)?(?:api_?keys?|secrets?|passwords?|passwd|pwd|passphrase|authorization|bearer|"
    r"credentials?|cookie|(?:secret|private|access|subscription)_?key|"
    r"(?:api|access|auth|bearer|refresh|session|hf)_?tokens?)",
    re.IGNORECASE,
)
# What the name of an environment variable may hold: the name is no secret.
_NAMES_A_VARIABLE = re.compile(r".*_(?:env|variable|var)", re.IGNORECASE)
_VARIABLES = re.compile(r".*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)", re.IGNORECASE)
# Shapes in which providers hand out keys: a short word, a mark, and a long run without spaces.
_SHAPES = re.compile(
    r"(?:\b(?:sk|pk|rk|gsk|xai|hf|pplx|glpat|ghp|gho|r8|nvapi|csk|fw|or)[-_][A-Za-z0-9_*-]{16,}"
    r"|\bAIza[0-9A-Za-z_-]{30,}|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,})"
)
_BEARER = re.compile(r"(\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE)
_FIELD = re.compile(
    r"""(["']?\b(?:[a-z]+[-_])*(?:api[-_]?key|authorization|password|secret|access[-_]?token)["']?"""
    r"""\s*[:=]\s*["']?)(?!\[secret)[^\s"',}&]{6,}""",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret: ``api_key`` does, ``max_tokens`` and
    ``api_key_env`` do not."""
    plain = name.strip().replace("-", "_").replace(" ", "_")
    return bool(_NAMES.fullmatch(plain)) and not _NAMES_A_VARIABLE.fullmatch(plain)


def looks_secret(text: str) -> bool:
    """Whether a text holds something in the shape of a provider's key, or a password in an address."""
    return bool(_SHAPES.search(text) or _BEARER.search(text) or _IN_URL.search(text))


def environment_secrets(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The values of environment variables whose names say that they are secret, longest first."""
    environment = os.environ if environment is None else environment
    found = {
        value.strip()
        for name, value in environment.items()
        if _VARIABLES.fullmatch(name) and len(value.strip()) >= SHORTEST
    }
    return tuple(sorted(found, key=lambda v: (-len(v), v)))


def scrub(text: str, secrets: Iterable[str] = (), *, shapes: bool = True) -> str:
    """The text without the values of ``secrets``, and without what has the shape of a key.

    ``shapes=False`` takes out known values only: a grader's reply may quote something that looks like a
    key and is none of ours, and a reply is stored as it came. What a provider says about a failure is
    scrubbed of both.
    """
    for secret in secrets:
        if len(secret) >= SHORTEST and secret in text:
            text = text.replace(secret, GONE)
    if not shapes:
        return text
    text = _BEARER.sub(rf"\1{GONE}", text)
    text = _FIELD.sub(rf"\1{GONE}", text)
    text = _SHAPES.sub(GONE, text)
    return _IN_URL.sub(GONE, text)


def refuse_secrets(content: Any, where: str, *, path: str = "") -> None:
    """Raise :class:`UsageError` where settings hold a secret, naming the setting and never its value."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            at = f"{path}.{name}" if path else str(name)
            if is_secret_name(str(name)) and value not in (None, "", False):
                raise UsageError(
                    f"{where}: {at} would hold a secret, and a study file is copied and shared. Take it "
                    "out, set it in the environment, and name the variable: "
                    'api_key_env = "NAME_OF_THE_VARIABLE".'
                )
            refuse_secrets(value, where, path=at)
    elif isinstance(content, list | tuple):
        for i, value in enumerate(content, start=1):
            refuse_secrets(value, where, path=f"{path}[{i}]")
    elif isinstance(content, str) and looks_secret(content):
        raise UsageError(
            f"{where}: {path} looks like a key or a password, and a study file is copied and shared. "
            "Take it out, set it in the environment, and name the variable: "
            'api_key_env = "NAME_OF_THE_VARIABLE".'
        )
