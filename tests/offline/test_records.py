import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.offline.asking import entities, facts

CRM = json.dumps(
    {
        "customer": {"name": "Falken Optik GmbH", "city": "Jena", "contact": {"name": "Eva Lind", "email": "eva@falken.example"}},
        "plan": "Enterprise", "owner": "Tom Lee", "status": "active", "since": "2022-03-01", "seats": 40, "tags": ["vip", "eu"],
    }
)  # fmt: skip
ORDER = json.dumps(
    {
        "order_id": "A-1001", "customer": {"id": 7, "name": "Lin Wei"}, "ordered_at": "2023-05-01T10:00:00Z", "status": "shipped",
        "items": [{"sku": "KB-1", "name": "Keyboard", "qty": 2, "price": 49.9}, {"name": "Mouse", "qty": 1}],
    }
)  # fmt: skip


def record_facts(content):
    return facts(content, speaker=None, kind="json")


def test_a_crm_record_is_about_its_customer():
    assert [(one.subject, one.predicate, one.objects[0]) for one in record_facts(CRM)] == [
        ("Falken Optik GmbH", "CITY", "Jena"),
        ("Falken Optik GmbH", "CONTACT", "Eva Lind"),
        ("Eva Lind", "EMAIL", "eva@falken.example"),
        ("Falken Optik GmbH", "PLAN", "Enterprise"),
        ("Falken Optik GmbH", "OWNER", "Tom Lee"),
        ("Falken Optik GmbH", "STATUS", "active"),
        ("Falken Optik GmbH", "SEATS", "40 seats"),
        ("Falken Optik GmbH", "TAGS", "vip"),
        ("Falken Optik GmbH", "TAGS", "eu"),
    ]


def test_entities_of_a_record_have_types():
    found = dict(entities(CRM, speaker=None, kind="json"))

    assert found["Falken Optik GmbH"] == "Organization"
    assert found["Eva Lind"] == found["Tom Lee"] == "Person"
    assert found["Jena"] == "Place"


def test_record_field_is_dated_by_update_not_creation():
    plan = next(one for one in record_facts(CRM) if one.predicate == "PLAN")

    assert plan.since is None
    assert plan.raw.quote == '"plan": "Enterprise"'
    changed = next(one for one in record_facts('{"id": "7", "status": "open", "updated_at": "2024-05-01"}'))
    assert (changed.predicate, changed.since) == ("STATUS", "2024-05-01")


def test_an_order_has_its_line_items_with_their_numbers():
    found = {one.objects[0]: one for one in record_facts(ORDER)}

    assert found["Keyboard"].subject == "order A-1001"
    assert found["Keyboard"].raw.sentence == "order A-1001: items include Keyboard (qty 2, price 49.9)."
    assert found["Keyboard"].since == "2023-05-01"
    assert found["Lin Wei"].predicate == "CUSTOMER"


def test_a_list_of_records_is_read_one_by_one():
    content = json.dumps([{"name": "Oslo office", "city": "Oslo"}, {"name": "Bergen office", "city": "Bergen"}])

    found = [(one.subject, one.objects[0]) for one in record_facts(content)]
    assert found == [("Oslo office", "Oslo"), ("Bergen office", "Bergen")]


def test_chinese_records_are_read():
    (fact,) = record_facts(json.dumps({"姓名": "李娜", "城市": "上海"}, ensure_ascii=False))

    assert (fact.subject, fact.predicate, fact.objects) == ("李娜", "城市", ["上海"])


def test_other_json_states_no_facts():
    for content in ("", "null", "12", '"text"', "[1, 2]", "{", "[" * 5000, "{}", '{"a": null}', '{"a": {"b": {}}}'):
        assert record_facts(content) == [], content


def test_deep_nesting_gives_at_most_50_facts():
    assert len(record_facts('{"a":' * 500 + '"x"' + "}" * 500)) <= 50


KEYS = st.sampled_from(["name", "id", "owner", "items", "since", "status", "", "email", "x y"]) | st.text(max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(JSON, st.booleans())
def test_facts_of_any_json_quote_it(record, ascii_only):
    content = json.dumps(record, ensure_ascii=ascii_only)

    for fact in record_facts(content):
        assert fact.raw.quote
        assert fact.raw.quote in content
        assert fact.raw.subject not in fact.raw.objects
