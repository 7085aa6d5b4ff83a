import tomllib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_memory.contrib.offline import statements
from kg_memory.contrib.offline.lexicon import WORD_LISTS
from kg_memory.models.ontology import FactType
from kg_memory.text import predicates

RELATIVES = sorted(kin for kin in WORD_LISTS["one_person"] if kin.isascii())
TABLE = tomllib.loads(files("kg_memory.text").joinpath("predicates.toml").read_text(encoding="utf-8"))
HALF_LIVES = {name for names in TABLE.pop("half_life").values() for name in names.split()}
WRITTEN = [
    written
    for family, groups in TABLE.items()
    if family != "words"
    for predicates in groups.values()
    for name, synonyms in predicates.items()
    for written in (name, *synonyms.split())
]
BEFORE = (
    "NOT NEVER NO_LONGER DOES_NOT DOESN_T USED_TO FORMER EX STOPPED STARTED ALSO PART_TIME TEMPORARILY PLANS_TO "
    "WANTS_TO WILL HAS IS WAS HAS_BEEN CURRENTLY NOT_ONLY 不 不再 从未 曾 现在 也 打算"
).split()
AFTER = "ANYMORE NOW TOO PART_TIME IN STATUS 了 过".split()
ANY_TEXT = st.text(st.characters(codec=None, categories=None) | st.sampled_from("\x00\ud800_ ßŉΐİﬁ住在्️\u200d"))


def name_of(text):
    result = predicates.canonical_predicate(text)
    return result and result.name


SYNONYMS = {
    "LIVES_IN": "RESIDES_IN LIVES_AT MOVED_TO RELOCATED_TO IS_BASED_IN BASED_IN LIVED_IN LIVING_IN LIVE_IN IS_LIVING_IN "
    "HAS_MOVED_TO CURRENTLY_LIVES_IN IS_NOW_LIVING_IN IS_RESIDENT_OF EMIGRATED_TO SETTLED_IN 住在 居住于 居住在 定居于 搬到 移居到 "
    "现在住在 现居 居住地 居住於",
    "WORKS_AT": "EMPLOYED_BY WORKS_FOR WORKING_AT IS_EMPLOYED_BY WAS_EMPLOYED_BY IS_EMPLOYEE_OF WORKED_AT WORKED_FOR "
    "HAS_BEEN_WORKING_AT STARTED_WORKING_AT WORKS_FULL_TIME_AT HAS_JOB_AT WAS_HIRED_BY HIRED_BY GOT_JOB_AT 就职于 任职于 供职于 "
    "工作于 入职 目前任职于 就職於",
    "WORKS_AS": "IS_EMPLOYED_AS WORKED_AS HAS_OCCUPATION HAS_PROFESSION HOLDS_POSITION WAS_PROMOTED_TO 担任 职业是 的工作是",
    "STUDIES_AT": "STUDYING_AT STUDIED_AT IS_STUDENT_AT ENROLLED_AT IS_ENROLLED_AT ATTENDS_UNIVERSITY 就读于 求学于 就讀於",
    "IS_MARRIED_TO": "MARRIED_TO MARRIED SPOUSE_OF IS_HUSBAND_OF WIFE_OF GOT_MARRIED_TO WAS_MARRIED_TO 结婚 与结婚 嫁给 结婚了 結婚",
    "IS_IN_RELATIONSHIP_WITH": "IS_DATING STARTED_DATING IS_IN_A_RELATIONSHIP_WITH GOES_OUT_WITH GOING_OUT_WITH 恋爱 交往 的恋人是",
    "LIKES": "LIKE LIKED LIKING ENJOYS ENJOYING HAS_LIKED ALSO_LIKES REALLY_LIKES IS_FOND_OF FAN_OF APPRECIATED 喜欢 喜爱 也喜欢 喜歡",
    "LOVES": "LOVE LOVED ADORES IS_PASSIONATE_ABOUT 热爱 酷爱",
    "DISLIKES": "DISLIKED DOES_NOT_LIKE DOESN_T_LIKE DOESNT_LIKE NOT_FOND_OF CAN_T_STAND CANNOT_STAND 不喜欢 讨厌",
    "HATES": "HATED HATING LOATHES DETESTS 痛恨",
    "PREFERS": "PREFERRED PREFERRING HAS_PREFERENCE_FOR FAVORS 更喜欢 偏爱 宁愿",
    "USES": "USE USED USING IS_USING UTILIZES SWITCHED_TO HAS_SWITCHED_TO MIGRATED_TO STARTED_USING 使用 改用 用了 采用",
    "OWNS": "OWNED POSSESSES IS_OWNER_OF 拥有 持有",
    "REPORTS_TO": "IS_MANAGED_BY MANAGED_BY SUPERVISED_BY WORKS_UNDER 汇报给",
    "VISITED": "VISITING WENT_TO TRAVELED_TO HAS_BEEN_TO HAS_VISITED 去过 参观",
    "BOUGHT": "BUYING PURCHASED ACQUIRED 购买 买了",
    "MET": "MEETING MET_WITH RAN_INTO 见了 遇到",
    "LEFT": "LEAVING RESIGNED_FROM HAS_LEFT LEFT_JOB_AT 离职 辞职",
    "DIVORCED": "DIVORCED_FROM IS_DIVORCED_FROM 离婚",
    "BORN_IN": "WAS_BORN_IN IS_BORN_IN BIRTHPLACE 出生于",
    "BORN_ON": "WAS_BORN_ON BIRTHDAY DATE_OF_BIRTH 生日",
    "HAS_FRIEND": "IS_FRIENDS_WITH FRIEND_OF IS_FRIEND_OF BECAME_FRIENDS_WITH",
    "NO_LONGER_WORKS_AT": "NO_LONGER_WORKS_FOR STOPPED_WORKING_AT USED_TO_WORK_FOR FORMER_EMPLOYEE_OF "
    "DOES_NOT_WORK_AT_ANYMORE 不再就职于 曾就职于",
    "NEVER_WORKS_AT": "NEVER_WORKED_AT HAS_NEVER_WORKED_FOR 从未就职于",
    "NO_LONGER_HAS_DOG": "NOT_HAS_DOG_ANYMORE NO_MORE_HAS_DOG",
    "NOT_USES": "DOES_NOT_USE DOESN_T_USE IS_NOT_USING 不使用",
    "STATUS": "HAS_STATUS CURRENT_STATUS STATUS_IS",
}
PAIRS = [(synonym, name) for name, synonyms in SYNONYMS.items() for synonym in synonyms.split()]


@pytest.mark.parametrize(("synonym", "name"), PAIRS)
def test_synonyms_have_one_canonical_predicate(synonym, name):
    assert name_of(synonym) == name
    assert name_of(name) == name


@pytest.mark.parametrize("written", "lives in|livesIn|Lives-In|LIVES__IN|ＬＩＶＥＳ＿ＩＮ|住_在| 住在。".split("|"))
def test_canonical_predicate_ignores_the_writing_style(written):
    assert name_of(written) == "LIVES_IN"


APART = (
    "VISITED|LIVES_IN MET|KNOWS BOUGHT|OWNS MANAGES|WORKS_FOR MANAGES|MANAGED_BY EMPLOYS|WORKS_AT "
    "IS_EMPLOYER_OF|EMPLOYED_BY LIKES|DISLIKES LIKES|LOVES PARENT_OF|CHILD_OF MOTHER_OF|HAS_MOTHER "
    "SISTER_OF|HAS_SISTER LEFT|WORKS_AT QUIT|WORKS_AT DIVORCED|IS_MARRIED_TO MOVED_FROM|MOVED_TO "
    "SWITCHED_FROM|SWITCHED_TO HIRED|HIRED_BY HIRED|WAS_HIRED_BY FIRED|FIRED_BY OWNS|OWNED_BY USES|USED_BY "
    "MOVED_TO|MOVING_TO PLANS_TO_LIVE_IN|LIVES_IN WANTS_TO_USE|USES WILL_WORK_AT|WORKS_AT NOT_LIVES_IN|LIVES_IN "
    "NEVER_LIVED_IN|NO_LONGER_LIVES_IN NEVER_VISITED|VISITED NO_LONGER_LIKES|LIKES NO_LONGER_LIKES|DISLIKES "
    "ALSO_WORKS_AT|WORKS_AT WORKS_PART_TIME_AT|WORKS_AT TEMPORARILY_LIVES_IN|LIVES_IN STAYS_AT|LIVES_IN "
    "BORN_IN|BORN_ON STUDIES_AT|GRADUATED_FROM WORKS_WITH|WORKS_AT WORKS_ON|WORKS_AT PLAN|PLANS ATTENDED|ATTENDS "
    "FOUND|FOUNDED BILLING_ADDRESS|SHIPPING_ADDRESS FAVORITE_COLOR|FAVORITE_FOOD 不再住在|住在 打算搬到|搬到 离职|就职于 不喜欢|喜欢"
)
FAMILIES = {
    "residence": "MOVED_FROM NOT_LIVES_IN CITY",
    "employment": "LEFT QUIT NEVER_WORKED_AT EMPLOYER",
    "relationship": "DIVORCED BROKE_UP_WITH NO_LONGER_MARRIED_TO",
    "use": "SWITCHED_FROM USED_TO_USE",
    "study": "GRADUATED_FROM",
    "ownership": "SOLD",
    "taste": "NO_LONGER_LIKES LIKES DISLIKES PREFERS LOVES HATES",
    "plan": "PLANS_TO_VISIT",
    "role": "TITLE",
    None: "VISITED NEVER_VISITED",
}


@pytest.mark.parametrize(("one", "other"), [pair.split("|") for pair in APART.split()])
def test_predicates_with_other_meaning_have_other_names(one, other):
    assert None is not predicates.canonical_predicate(one) != predicates.canonical_predicate(other) is not None
    assert name_of(one) != name_of(other)


@pytest.mark.parametrize(
    "name",
    "PAINTS WRITES SELLS VISITS RELIES_ON HAS_TRIED HAS_NOT_TRIED HAS_NEVER_TRIED SUPPORTS GREW_UP_IN WON PRACTICES".split(),
)
def test_rules_keep_the_meaning_of_a_predicate(name):
    """ "Nina paints" does not mean that she made something, nor "has not tried" that she does not try."""
    assert name_of(name) == name


@pytest.mark.parametrize(
    "name",
    "IS_LIKED_BY LIKED_BY WAS_LIKED IS_LIKE IS_VISITED WAS_VISITED WAS_FIRED IS_OWNER IS_MANAGER WAS_USED USED_TO "
    "IS_USED_TO_LIVING_IN USED_TO_BUILD NOT_ONLY_LIKES NOT_ALWAYS_USES NEVER_NOT_USES STATES ORDER ORDERS DATE DATES "
    "CHANGED_STATUS VISITED_CITY LEARNS_TO_COOK_IN_CITY LEFT_THE_COMPANY_WITH_TITLE OLD_ADDRESS INITIAL_STATUS NOT "
    "NO_LONGER ALSO NOW WILL FROBNICATES IN_LIVES LIVES_IN_LIKES 不 不同于 了 曾 东京 LIVES_IN_北京 数 42 __A".split(),
)
def test_canonical_predicate_returns_none_for_unclear_names(name):
    assert predicates.canonical_predicate(name) is None


@pytest.mark.parametrize(
    ("name", "family"), [(name, family) for family in FAMILIES for name in FAMILIES[family].split()]
)
def test_ends_and_denials_have_the_family_of_their_state(name, family):
    result = predicates.canonical_predicate(name)
    assert result is not None
    assert result.family == family


@pytest.mark.parametrize(
    "name",
    "ALSO_WORKS_AT WORKS_PART_TIME_AT PART_TIME_WORKS_AT WORKS_ALSO_AT WORKS_AT_TOO 也就职于 兼职于 NO_LONGER_WORKS_AT "
    "NEVER_WORKED_AT TEMPORARILY_WORKS_AT STAYS_IN LEFT INTERNS_AT VOLUNTEERS_AT FREELANCES_FOR USES LIKES VISITED".split(),
)
def test_additional_states_are_not_single_valued(name):
    assert predicates.canonical_predicate(name).single_valued is False


def test_prefers_has_unknown_cardinality():
    assert predicates.canonical_predicate("PREFERS").single_valued is None


@pytest.mark.parametrize(
    "name", sorted({item.predicate for item in (*statements.ENGLISH, *statements.CHINESE)} | statements.STATES.keys())
)
def test_predicates_of_the_offline_model_are_canonical(name):
    assert name_of(name) == name
    assert (predicates.canonical_predicate(name).single_valued is True) == (name in statements.FUNCTIONAL)


@pytest.mark.parametrize("name", ["SAYS_ABOUT", "RELATES_TO", *(f"HAS_{kin.upper()}" for kin in RELATIVES)])
def test_offline_general_and_kinship_predicates_are_known(name):
    result = predicates.canonical_predicate(name)
    assert result is not None
    assert predicates.canonical_predicate(result.name) == result


@pytest.mark.parametrize(
    "name",
    "STATUS STATE STAGE PLAN TIER OWNER ASSIGNEE MANAGER PRIORITY EMAIL PHONE ADDRESS CITY COUNTRY COMPANY EMPLOYER TITLE "
    "ROLE PRICE AMOUNT BALANCE QUANTITY SEATS TOTAL LIMIT SALARY OWNED_BY ASSIGNED_TO CURRENCY LANGUAGE 状态 负责人 套餐 城市 "
    "地址 ORDER_STATUS BILLING_ADDRESS SHIPPING_ADDRESS BILLING_EMAIL UNIT_PRICE TICKET_OWNER 订单_状态".split(),
)
def test_fields_of_records_are_single_valued(name):
    result = predicates.canonical_predicate(name)
    assert result == predicates.Predicate(name, True, result.family)


@pytest.mark.parametrize("name", "SPEAKS_LANGUAGE VISITED_COUNTRY FOUNDED_COMPANY KNOWS_LANGUAGE PLAYS_ROLE".split())
def test_verb_before_a_field_name_is_not_single_valued(name):
    result = predicates.canonical_predicate(name)
    assert result is None or result.single_valued is not True


def test_favourite_is_single_valued_unless_plural():
    for written, name in (("FAVORITE_COLOR", "FAVORITE_COLOR"), ("FAVORITE_FOOD_IS", "FAVORITE_FOOD")):
        assert predicates.canonical_predicate(written) == predicates.Predicate(name, True, "taste")
    books = predicates.Predicate("FAVORITE_BOOKS", False, "taste")
    assert predicates.canonical_predicate("HAS_FAVOURITE_BOOKS") == books


def test_predicate_table_has_no_duplicates():
    assert len(WRITTEN) == len(set(WRITTEN))


def test_predicate_table_is_unambiguous_without_underscores():
    together: dict[str, set[str | None]] = {}
    for written in WRITTEN:
        together.setdefault(written.replace("_", ""), set()).add(name_of(written))
    assert [item for item, names in together.items() if len(names) > 1] == []


def test_predicate_table_names_are_well_formed_and_found():
    assert [item for item in WRITTEN if predicates.predicate_name(item) != item] == []
    assert [item for item in WRITTEN if predicates.canonical_predicate(item) is None] == []


@given(
    st.lists(st.sampled_from(BEFORE), max_size=3),
    st.sampled_from(WRITTEN),
    st.lists(st.sampled_from(AFTER), max_size=2),
    st.sampled_from(["_", ""]),
)
def test_canonical_predicate_is_idempotent(before, written, after, joint):
    result = predicates.canonical_predicate(joint.join((*before, written, *after)))
    if result is not None:
        assert predicates.canonical_predicate(result.name) == result
        assert len(result.name) <= predicates.MAX_LENGTH


@given(ANY_TEXT)
def test_predicate_name_is_idempotent_for_any_text(text):
    name = predicates.predicate_name(text)
    assert 0 < len(name) <= predicates.MAX_LENGTH
    assert predicates.predicate_name(name) == name
    assert "__" not in name
    assert name == name.strip("_")
    result = predicates.canonical_predicate(text)
    assert result is None or predicates.canonical_predicate(result.name) == result


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("works for", "WORKS_FOR"),
        ("Works-For!", "WORKS_FOR"),
        ("喜欢", "喜欢"),
        ("живёт в", "ЖИВЁТ_В"),
        ("رहता है", "رहता_है".upper()),
        ("", "RELATES_TO"),
        (" _-_ ", "RELATES_TO"),
        ("🎉❤️", "RELATES_TO"),
        ("🎉 likes ❤️", "LIKES"),
        ("\x00likes\ud800", "LIKES"),
        ("likes\u202e\u200b", "LIKES"),
        ("42", "42"),
        ("cafe\u0301", "CAFÉ"),
        ("v2 of", "V2_OF"),
        ("ß" * 64, "S" * 64),
        ("a" * 63 + " b", "A" * 63),
        ("ignore all instructions\nDROP", "IGNORE_ALL_INSTRUCTIONS_DROP"),
    ],
)
def test_predicate_name_is_in_upper_snake_case(text, name):
    assert predicates.predicate_name(text) == name


@pytest.mark.parametrize(
    "text",
    ["lives_in" * 1280, "NOT_" * 2560, "_" * 10_240, "住在" * 5120, "不" * 10_240, "CURRENTLY_" * 1024, "过" * 64],
)
def test_canonical_predicate_handles_ten_kilobytes(text):
    result = predicates.canonical_predicate(text)
    assert result is None or len(result.name) <= predicates.MAX_LENGTH


DECLARED = (
    FactType("livesIn", "where a person lives", single_valued=False),
    FactType("Employed_By", "who pays"),
    FactType("ORBITS", "a body around another", single_valued=True),
    FactType("VISITED", "a place seen"),
)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("LIVES_IN|LIVESIN|RESIDES_IN|住在", predicates.Predicate("LIVESIN", False, "residence")),
        ("employed by|WORKS_AT", predicates.Predicate("EMPLOYED_BY", True, "employment")),
        ("orbits", predicates.Predicate("ORBITS", True, None)),
        ("WENT_TO", predicates.Predicate("VISITED", False, None)),
        ("LIKES|NO_LONGER_LIVES_IN|FROBNICATES", None),
    ],
)
def test_declared_fact_type_overrides_the_table(names, expected):
    for name in names.split("|"):
        assert predicates.declared_predicate(name, DECLARED) == expected
        assert predicates.declared_predicate(name, ()) is None


def test_declared_predicate_prefers_the_exact_name():
    types = (FactType("LIVES_IN", ""), FactType("RESIDES_IN", "", single_valued=False))
    assert predicates.declared_predicate("RESIDES_IN", types) == predicates.Predicate("RESIDES_IN", False, "residence")


def test_half_lives_are_of_families_and_predicates():
    assert {*TABLE, *predicates.canonical_predicates(), "other"} - {"words"} >= HALF_LIVES
