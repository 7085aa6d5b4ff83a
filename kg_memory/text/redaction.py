"""Redaction: what is taken out of a message before it is stored, embedded or sent to a model.

    GraphMemory(redact="secrets,personal")          built-in ones, also as ``KG_MEMORY_REDACT``
    GraphMemory(redact=lambda text: ...)            a function of your own, from text to text

It must give the same text the same way each time, and leave alone what it has redacted: a message is known again by
what is left of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kg_memory.errors import InputError, SettingsError

RedactHook = Callable[[str], str]

SECRET, PRIVATE_KEY, CARD = "[secret]", "[private key]", "[card number]"
EMAIL, PHONE, ACCOUNT, ID_NUMBER = "[e-mail]", "[phone number]", "[bank account]", "[id number]"

_PEM = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)", re.DOTALL)
_TOKEN = re.compile(
    r"\b(?:(?:AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255}"
    r"|glpat-[\w-]{20,100}|xox[abeoprs]-[\w-]{10,255}|sk-[\w-]{20,255}|[rsp]k_(?:live|test)_\w{16,255}"
    r"|AIza[\w-]{35}|ya29\.[\w-]{20,255}|hf_[A-Za-z0-9]{30,100}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,255}"
    r"|SG\.[\w-]{16,64}\.[\w-]{16,64}|\d{8,10}:AA[\w-]{33}|eyJ[\w-]{10,4000}\.eyJ[\w-]{10,4000}\.[\w-]{5,4000})",
    re.ASCII,
)
"""Keys and tokens by the forms that their makers give them."""
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
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,256}:)[^\s@/]{1,256}(?=@)", re.IGNORECASE | re.ASCII)
_DIGITS = re.compile(r"(?<![\d.,])\d(?:[ -]?\d){12,18}(?![\d]|[.,]\d)", re.ASCII)
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
    """Return *text* without keys, tokens, passwords and the numbers of cards."""
    text = _TOKEN.sub(SECRET, _PEM.sub(PRIVATE_KEY, text))
    for pattern in (_NAMED, _PASSWORD, _IN_URL):
        text = pattern.sub(lambda found: f"{found[found.lastindex or 0]}{SECRET}", text)
    return _DIGITS.sub(lambda found: CARD if _is_card(found[0]) else found[0], text)


def redact_personal(text: str) -> str:
    """Return *text* without e-mail addresses, phone numbers, bank accounts (IBAN) and numbers of identity cards."""
    text = _EMAIL.sub(EMAIL, text)
    text = _IBAN.sub(lambda found: ACCOUNT if _is_iban(found[0]) else found[0], text)
    text = _RESIDENT.sub(lambda found: ID_NUMBER if _is_resident(found[0]) else found[0], text)
    return _PHONE.sub(PHONE, _SOCIAL.sub(ID_NUMBER, text))


BUILT_IN: Mapping[str, RedactHook] = MappingProxyType({"secrets": redact_secrets, "personal": redact_personal})


def resolve_hooks(given: RedactHook | str | None) -> tuple[RedactHook, ...]:
    """Return what redacts: the function that is *given*, or the built-in ones by their names, with commas between.

    Errors: `SettingsError` names those that there are.
    """
    if given is None:
        return ()
    if callable(given):
        return (given,)
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else [given]
    if unknown := [name for name in names if name not in BUILT_IN]:
        raise SettingsError(
            f"redact is {unknown[0]!r}: set it to {' or '.join(BUILT_IN)}, or both with a comma, or give a function"
        )
    return tuple(BUILT_IN[name] for name in names)


def redact(text: str, given: RedactHook | str | None) -> str:
    """Return *text* as the hook leaves it.

    Errors: `InputError` where the hook fails, gives no text, or changes what it has redacted once.
    """
    for hook in resolve_hooks(given):
        left = _called(hook, text)
        if left != text and _called(hook, left) != left:
            raise InputError("the redact hook changes what it has redacted: have it leave its own marks as they are")
        text = left
    return text


def redact_json(content: str, given: RedactHook | str | None) -> str:
    """Return the JSON *content* as the hook leaves it, which is JSON too: a number that it changes becomes a text.

    Errors: `InputError` as for `redact`, and where what is left is no JSON.
    """
    left = redact(content, given)
    if left == content or _is_json(left):
        return left
    texts = json.dumps(_numbers_as_texts(json.loads(content), given), ensure_ascii=False)
    left = redact(texts, given)
    if not _is_json(left):
        raise InputError("the redact hook leaves no valid JSON: have it keep quotes and brackets, or use kind='text'")
    return left


def _called(hook: RedactHook, text: str) -> str:
    try:
        left = hook(text)
    except Exception as error:  # noqa: BLE001 - whatever a user's function may raise
        # What the hook says of its failure may quote the very text that is to be kept out of logs.
        raise InputError(f"the redact hook failed ({type(error).__name__}): mend it; nothing was stored") from None
    if not isinstance(left, str):
        raise InputError(f"the redact hook gave a {type(left).__name__}: have it return the text; nothing was stored")
    return left


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _numbers_as_texts(value: Any, given: RedactHook | str | None) -> Any:
    match value:
        case dict():
            return {key: _numbers_as_texts(each, given) for key, each in value.items()}
        case list():
            return [_numbers_as_texts(each, given) for each in value]
        case int() | float() if not isinstance(value, bool):
            return value if (left := redact(str(value), given)) == str(value) else left
    return value


def _is_card(digits: str) -> bool:
    """Tell whether the number begins like a card's and its check digit is right (Luhn)."""
    digits = re.sub(r"\D", "", digits)
    if not _CARDS.fullmatch(digits) or (digits[0] in "25" and len(digits) != 16):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(each - 9 * (each > 9) for each in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    """Tell whether the check digits are right (ISO 13616)."""
    account = text.replace(" ", "")
    return 15 <= len(account) <= 34 and int("".join(str(int(each, 36)) for each in account[4:] + account[:4])) % 97 == 1


def _is_resident(number: str) -> bool:
    """Tell whether the check digit of a Chinese identity card is right (GB 11643)."""
    total = sum(int(digit) * (1 << (17 - place)) for place, digit in enumerate(number[:17]))
    return "10X98765432"[total % 11] == number[17].upper()
