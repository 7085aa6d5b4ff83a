"""Redaction: remove secrets from a message before it is stored, embedded or sent to a model.

    GraphMemory()                                   removes keys, tokens and passwords: ``secrets`` is the default
    GraphMemory(redact="secrets,personal")          built-in hooks, also as ``KG_MEMORY_REDACT``
    GraphMemory(redact=lambda text: ...)            a function of your own, from text to text
    GraphMemory(redact="none")                      keeps texts as they are

A hook must be deterministic, and must not change text that it has redacted: messages are identified by their redacted
text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kg_memory.errors import InputError
from kg_memory.settings import NO_REDACTION, RedactHook
from kg_memory.text.tokenise import replace_matches

SECRET, PRIVATE_KEY, CARD = "[secret]", "[private key]", "[card number]"
SHORTEST_KEY = 8
"""A shorter API key is not treated as a secret: it is the placeholder given to servers without keys."""
EMAIL, PHONE, ACCOUNT, ID_NUMBER = "[e-mail]", "[phone number]", "[bank account]", "[id number]"

_PEM = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)", re.DOTALL)
_TOKEN = re.compile(
    r"\b(?:(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255}"
    r"|glpat-[\w-]{20,100}|xox[abeoprs]-[\w-]{10,255}|sk-[\w-]{20,255}|[rsp]k_(?:live|test)_\w{16,255}"
    r"|AIza[\w-]{35}|ya29\.[\w-]{20,255}|hf_[A-Za-z0-9]{30,100}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,255}"
    r"|SG\.[\w-]{16,64}\.[\w-]{16,64}|\d{8,10}:AA[\w-]{33}|eyJ[\w-]{10,4000}\.eyJ[\w-]{10,4000}\.[\w-]{5,4000})",
    re.ASCII,
)
"""Keys and tokens in the formats of their issuers."""
_QUOTE = r"[\"'`]?"
_VALUE = "[^\\s\"'`,;<\u3000-\u9fff\uff00-\uffef]"
_NAMED = re.compile(
    rf"((?:api[_ -]?|access[_ -]?|auth[_ -]?|client[_ -]?|secret[_ -]?|private[_ -]?)(?:key|token|secret){_QUOTE}"
    rf"\s{{0,3}}(?:[:=：]|is)\s{{0,3}}{_QUOTE})(?=[\w+/=.-]{{0,64}}\d)[\w+/=.-]{{8,4000}}"
    rf"|(\bauthorization{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}{_QUOTE}(?:basic|bearer|token)\s{{1,3}}"
    rf"|\bbearer\s{{1,3}}(?=[\w+/=.~-]{{0,64}}\d))[\w+/=.~-]{{8,4000}}",
    re.IGNORECASE | re.ASCII,
)
_PASSWORD = re.compile(
    rf"((?:password|passwd|passcode|passphrase|pwd){_QUOTE}\s{{0,3}}[:=：]\s{{0,3}}{_QUOTE})"
    rf"(?![a-z_][\w.]{{0,64}}[\[(]){_VALUE}{{3,256}}"
    rf"|((?:password|passcode|passphrase)\s{{1,3}}is\s{{1,3}}{_QUOTE})(?={_VALUE}{{0,256}}[\d!@#$%^&*]){_VALUE}{{4,256}}"
    r"|(\bpin(?: code| number)?(?: is|\s?[:=])\s{0,3})\d{4,8}\b"
    rf"|(密[码碼]\s{{0,3}}(?:是|为|為|[:=：])\s{{0,3}}{_QUOTE})[\w!@#$%^&*+.-]{{4,256}}",
    re.IGNORECASE | re.ASCII,
)
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,256}:)[^\s@/]{1,256}(?=@)", re.IGNORECASE | re.ASCII)
# Groups of digits: one number, or several in a row.
_NUMBERS = re.compile(r"(?<![\d.])\d+(?:[ -]\d+)*(?!\d|\.\d)", re.ASCII)
_GROUP = re.compile(r"\d+", re.ASCII)
MOST_GROUPS = 5
"""The most groups of digits in a card number; the longest has 19 digits."""
_CARDS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|22[2-9]|2[3-6]\d|27[01]|2720)\d*|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|35\d{14}|6(?:011|5\d\d|4[4-9]\d|2\d\d)\d{12,15}"
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}\b", re.IGNORECASE | re.ASCII)
_PHONE = re.compile(
    r"(?<![\w+.-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,4}"
    r"|\(\d{3}\)[ .-]?\d{3}[ .-]\d{4}|\d{3}[ .-]\d{3}[ .-]\d{4}|1[3-9]\d{9})(?![\w-]|\.\d)",
    re.ASCII,
)
_SOCIAL = re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-])", re.ASCII)
_RESIDENT = re.compile(r"(?<!\w)\d{17}[\dXx](?!\w)", re.ASCII)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)", re.ASCII)


def redact_secrets(text: str) -> str:
    """Return *text* with ``[secret]`` in place of each key, token and password.

    Private keys in PEM format become ``[private key]``.
    """
    if "PRIVATE KEY-----" in text:
        text = _PEM.sub(PRIVATE_KEY, text)
    text = replace_matches(_TOKEN, lambda _: SECRET, text)
    for pattern in (_NAMED, _PASSWORD, _IN_URL):
        text = replace_matches(pattern, lambda match: f"{match[match.lastindex or 0]}{SECRET}", text)
    return text


def hide_secrets(text: str, keys: Iterable[str] = ()) -> str:
    """Return *text* with ``[secret]`` in place of the API *keys* and of everything else that looks like a secret."""
    for key in keys:
        text = text.replace(key, SECRET) if len(key) >= SHORTEST_KEY else text
    return redact_secrets(text)


def redact_personal(text: str) -> str:
    """Return *text* with placeholders such as ``[e-mail]`` in place of personal data."""
    redacted = _NUMBERS.sub(lambda match: _redact_cards(match[0]), _EMAIL.sub(EMAIL, text))
    redacted = _IBAN.sub(lambda match: ACCOUNT if _is_iban(match[0]) else match[0], redacted)
    redacted = _RESIDENT.sub(lambda match: ID_NUMBER if _is_resident(match[0]) else match[0], redacted)
    redacted = _PHONE.sub(PHONE, _SOCIAL.sub(ID_NUMBER, redacted))
    # Again, as a phone number in front of a card hides it: together they are one long number.
    return redacted if redacted == text else redact_personal(redacted)


BUILT_IN: Mapping[str, RedactHook] = MappingProxyType({"secrets": redact_secrets, "personal": redact_personal})


def _hooks(setting: RedactHook | str) -> tuple[RedactHook, ...]:
    if setting == NO_REDACTION:
        return ()
    return (setting,) if callable(setting) else tuple(BUILT_IN[name.strip()] for name in setting.split(","))


def redact_text(text: str, setting: RedactHook | str) -> str:
    """Return *text* without the data that *setting* names: "secrets", "secrets,personal", or your own function.

    Errors: `InputError` if a function fails, does not return text, or would change its own result again.
    """
    hooks, redacted = _hooks(setting), text
    for hook in hooks:
        redacted = _apply_hook(hook, redacted)
    # Again, as text removed by one hook may have hidden a match of another: a phone number in front of a card.
    return redacted if redacted == text or len(hooks) == 1 else redact_text(redacted, setting)


def _apply_hook(hook: RedactHook, text: str) -> str:
    redacted = _call_hook(hook, text)
    if redacted != text and _call_hook(hook, redacted) != redacted:
        raise InputError("the redact hook changes text that it has redacted: make it leave its own marks unchanged")
    return redacted


def redact_json(content: str, setting: RedactHook | str) -> str:
    """Return the JSON text *content* without the data that *setting* (`Settings.redact`) names, as JSON.

    Errors: `InputError`, also if the result is not JSON.
    """
    redacted = redact_text(content, setting)
    if redacted == content or _is_json(redacted):
        return redacted
    redacted = redact_text(json.dumps(_numbers_to_texts(json.loads(content), setting), ensure_ascii=False), setting)
    if not _is_json(redacted):
        raise InputError("redacted text is not valid JSON: make the hook keep quotes and brackets, or use kind='text'")
    return redacted


def _call_hook(hook: RedactHook, text: str) -> str:
    try:
        redacted = hook(text)
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything
        # The hook's message may quote the text, which must stay out of logs.
        raise InputError(f"the redact hook failed ({type(error).__name__}): correct it; nothing was stored") from None
    if not isinstance(redacted, str):
        raise InputError(f"the redact hook must return str, got {type(redacted).__name__}; nothing was stored")
    return redacted


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _numbers_to_texts(value: Any, setting: RedactHook | str, key: str = "") -> Any:
    """Return *value*, parsed JSON, with a redacted string in place of each number that *setting* would redact."""
    match value:
        case dict():
            return {key: _numbers_to_texts(item, setting, key) for key, item in value.items()}
        case list():
            return [_numbers_to_texts(item, setting, key) for item in value]
        case int() | float() if not isinstance(value, bool):
            redacted, keyed = redact_text(str(value), setting), json.dumps({key: value})
            return value if redacted == str(value) and redact_text(keyed, setting) == keyed else redacted
    return value


def _redact_cards(numbers: str) -> str:
    """Replace payment card numbers in a text of digit groups: "4111 1111 1111 1111" -> "[card number]"."""
    # A card number is all of the digits, or groups of four or more, of which the last may be shorter.
    groups = [match.span() for match in _GROUP.finditer(numbers)]
    parts: list[str] = []
    end = 0
    for first, (start, _) in enumerate(groups):
        stop = _end_of_card(numbers, groups[first : first + MOST_GROUPS])
        if start >= end and stop > start:
            parts += _redact_if_card(numbers[end:start]), CARD
            end = stop
    return "".join((*parts, _redact_if_card(numbers[end:])))


def _redact_if_card(numbers: str) -> str:
    return numbers.replace(numbers.strip(" -"), CARD) if _is_card(numbers) else numbers


def _end_of_card(numbers: str, groups: Sequence[tuple[int, int]]) -> int:
    """Return the index in *numbers* where the longest card number ends that starts with the first group; 0 if none."""
    end = 0
    for start, stop in groups:
        if _is_card(numbers[groups[0][0] : stop]):
            end = stop
        if stop - start < 4:
            break
    return end


def _is_card(digits: str) -> bool:
    """Return whether *digits* look like a payment card number, by the first digits and the check digit (Luhn)."""
    digits = re.sub(r"\D", "", digits)
    if not _CARDS.fullmatch(digits) or (digits[0] in "25" and len(digits) != 16):
        return False
    doubled = (int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits)))
    return sum(digit - 9 * (digit > 9) for digit in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    """Return whether the check digits of the IBAN *text* are right (ISO 13616)."""
    account = text.replace(" ", "")
    digits = "".join(str(int(character, 36)) for character in account[4:] + account[:4])
    return 15 <= len(account) <= 34 and int(digits) % 97 == 1


def _is_resident(number: str) -> bool:
    """Return whether the check digit of the Chinese identity card *number* is right (GB 11643)."""
    total = sum(int(digit) * (1 << (17 - index)) for index, digit in enumerate(number[:17]))
    return "10X98765432"[total % 11] == number[17].upper()
