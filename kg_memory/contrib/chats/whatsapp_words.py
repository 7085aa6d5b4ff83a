"""The words of WhatsApp itself in an exported chat, in the languages that have most users."""

from __future__ import annotations

import re


def _any(phrases: str) -> str:
    """Return a pattern for one of *phrases*, which stand a line each."""
    return f"(?:{'|'.join(filter(None, map(str.strip, phrases.splitlines())))})"


GLUE = re.compile(r"^(?:klo|kl|um|à|às|alle|plkst|ob|lúc|г|日|일|u|o)(?=.|$)")
"""Words between the date and the time."""
AM = frozenset(
    """
    am vorm vm fm sa de dop öö pg eparadites pd πμ ص قظ قبلدوپہر पूर्वाह्न सुबह পূর্বাহ্ণ முற்பகல் ก่อนเที่ยง לפנהצ
    오전 午前 上午 凌晨 早上 清晨 дп
    """.split()
)
PM = frozenset(
    """
    pm nachm nm em ch du odp ös ptg epasdites md μμ م بظ بعددوپہر अपराह्न शाम অপরাহ্ণ பிற்பகல் หลังเที่ยง אחהצ
    오후 午後 下午 晚上 傍晚 пп
    """.split()
)
NOON = frozenset(("中午", "noon"))
DELETED = re.compile(
    _any("""
    this message was deleted
    you deleted this message
    diese nachricht wurde gelöscht
    du hast diese nachricht gelöscht
    se eliminó este mensaje
    eliminaste este mensaje
    este mensaje fue eliminado
    esta mensagem foi apagada
    mensagem apagada
    você apagou esta mensagem
    apagou esta mensagem
    ce message a été supprimé
    vous avez supprimé ce message
    questo messaggio è stato eliminato
    hai eliminato questo messaggio
    dit bericht is verwijderd
    (?:je|u) hebt dit bericht verwijderd
    данное сообщение удалено
    вы удалили (?:данное|это) сообщение
    bu mesaj silindi
    bu mesajı sildiniz
    detta meddelande raderades
    du raderade detta meddelande
    denne (?:meldingen ble slettet|besked blev slettet)
    tämä viesti poistettiin
    ta wiadomość została usunięta
    pesan ini (?:telah )?dihapus
    anda menghapus pesan ini
    تم حذف هذه الرسالة
    הודעה זו נמחקה
    यह मैसेज मिटाया गया
    此消息已(?:被)?删除
    您已删除此消息
    此訊息已刪除
    このメッセージは削除されました
    삭제된 메시지입니다
    null
    """)
    + "[.。]?",
    re.IGNORECASE,
)
OMITTED = re.compile(
    r".{0,30}"
    + _any("""
    omit
    weggelassen
    ausgeschlossen
    ocult
    omis
    omess
    weggelaten
    utelämn
    utelat
    udelad
    jätettiin
    puuttuu
    pomini
    vynech
    dahil edilmedi
    пропущ
    без медиа
    не добавлен
    省略
    忽略
    생략
    含まれていません
    未包含
    استبعاد
    הושמט
    छोड़
    tidak disertakan
    absent
    """)
    + ".{0,12}",
    re.IGNORECASE,
)
"""An attachment that was not exported."""
ENCRYPTED = re.compile(
    _any("""
    end-to-end
    ende-zu-ende
    de extremo a extremo
    de ponta a ponta
    de bout en bout
    crittografi
    сквозн
    uçtan uca
    端到端
    端對端
    エンドツーエンド
    종단
    التشفير
    totalsträck
    päästä päähän
    ujung ke ujung
    מוצפנ
    """),
    re.IGNORECASE,
)
EDITED = re.compile(
    r"\s*<[^<>]*(?:edited|bearbeitet|edit[oóa]|édité|modifi|bewerkt|измен|düzenlen|redigera|muokat|edytowan|"
    r"編集|编辑|編輯|수정|diedit|تعديل|נערכה)[^<>]*>\s*$",
    re.IGNORECASE,
)
ATTACHED = re.compile(
    r"\((?:file|datei|archivo|arquivo|ficheiro|fichier|bestand|файл|dosya|fil|ファイル|文件|파일)", re.IGNORECASE
)
