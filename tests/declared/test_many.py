"""Many declared facts: rows, records with a mapping, and files of the command."""

import json

import pytest

from kg_memory.cli.command import main
from kg_memory.contrib.mapping import RecordMapping
from kg_memory.errors import InputError

JOBS = {"subject": "$.employee.name", "predicate": "WORKS_AT", "object": "$.jobs[*].at", "valid_at": "$.jobs[*].from"}
RECORD = {"id": 7, "employee": {"name": "Dan"}, "jobs": [{"at": "Acme", "from": "2019"}, {"at": "Beta", "from": 2021}]}


def test_add_many_accepts_rows_and_triples_in_order(declaring, namespace):
    done = []
    rows = [
        ("Ann", "WORKS_AT", "Acme"),
        {"subject": "Ann", "predicate": "LIVES_IN", "object": "Oslo", "valid_at": "2020", "source_id": "1"},
        {"subject": "Ann", "predicate": "LIVES_IN", "object": "Rome", "valid_at": "2021", "source_id": "2"},
        {"subject": "Ann", "predicate": "LIVES_IN", "object": "Rome", "valid_at": "2021", "source_id": "2"},
        ("Ann", "is retired"),
    ]
    added = declaring.facts.add_many(iter(rows), namespace=namespace, progress=done.append)
    assert [one.facts for one in added][:3] == [("Ann works at Acme",), ("Ann lives in Oslo",), ("Ann lives in Rome",)]
    assert [at.done for at in done] == [1, 2, 3, 4, 5]
    assert added[2].ended == ("Ann lives in Oslo",)
    assert declaring.stats(namespace=namespace).episodes == 4
    again = declaring.facts.add_many(rows[1:3], namespace=namespace)
    assert [result.new for result in again] == [False, False]
    assert declaring.facts.add_many([], namespace=namespace) == []


def test_add_many_equals_repeated_add(declaring, namespace):
    rows = [
        {"subject": f"P{number % 7}", "predicate": ("LIVES_IN", "LIKES", "KNOWS")[number % 3], "object": f"T{number % 5}",
         "valid_at": f"{2000 + number}", "source_id": str(number), "at": "2025-01-01"}
        for number in range(60)
    ]  # fmt: skip
    declaring.facts.add_many(rows, namespace=namespace)
    for row in rows:
        fields = {name: value for name, value in row.items() if name not in ("subject", "predicate", "object")}
        declaring.facts.add(row["subject"], row["predicate"], row["object"], **fields, namespace=f"{namespace}1")

    def whole(own):
        facts = declaring.facts.list(namespace=own)
        entities = declaring.entities.list(namespace=own)
        return (
            sorted((fact.sentence, fact.valid_at, str(fact.invalid_at), len(fact.sources)) for fact in facts),
            {entity.name: entity.summary for entity in entities},
        )

    assert whole(namespace) == whole(f"{namespace}1")


def test_add_many_names_invalid_rows_and_stores_nothing(declaring, namespace):
    rows = [("Ann", "LIKES", f"thing {number}") for number in range(20)]
    rows[3:3] = [("Ann",), {"subject": "Ann", "predicate": "LIKES", "objekt": "x"}, 5]
    with pytest.raises(InputError, match=r"row 4: .*row 5: .*objekt.*row 6: .*nothing was saved"):
        declaring.facts.add_many(rows, namespace=namespace)
    for bad in ({"subject": "Ann"}, "Ann", None):
        with pytest.raises(InputError, match="rows must be a list of facts"):
            declaring.facts.add_many(bad, namespace=namespace)
    assert declaring.stats(namespace=namespace).episodes == 0


def test_add_many_stops_at_a_source_id_in_use(declaring, namespace):
    liked = {"subject": "Ann", "predicate": "LIKES"}
    rows = [{**liked, "object": name, "source_id": id_} for name, id_ in ("a1", "b2", "c1", "d3")]
    with pytest.raises(InputError, match="source_id '1' is already stored"):
        declaring.facts.add_many(rows, namespace=namespace)
    counts = declaring.stats(namespace=namespace)
    assert (counts.episodes, counts.facts, counts.waiting) == (2, 2, 0)


def test_mapping_adds_facts_of_a_record_and_reports_the_rest(declaring, namespace):
    record = {**RECORD, "jobs": [*RECORD["jobs"], {"from": "2022"}, {"at": "Gamma", "from": "soon"}]}
    city = {"subject": "$.employee.name", "predicate": "LIVES_IN", "object": "$.address.city"}
    told = {"kind": "json", "source": "hr", "source_id": "7"}
    added = declaring.add(json.dumps(record), **told, mapping=[JOBS, city], namespace=namespace)
    assert added.facts == ("Dan works at Acme", "Dan works at Beta")
    missing, bad, no_city = added.unmapped
    assert missing == "mapping 1: object $.jobs[2].at is missing"
    assert bad.startswith("mapping 1: valid_at must be a time, got 'soon'")
    assert no_city == "mapping 2: object $.address.city is missing"
    beta, acme = declaring.facts.about("Dan", namespace=namespace)
    assert (acme.invalid_at, beta.invalid_at) == (beta.valid_at, None)
    # The whole record is stored, and deleted with its facts.
    episode = declaring.episodes.get(added.episode, namespace=namespace)
    assert json.loads(episode.content)["record"] == record
    declaring.privacy.forget(episode=added.episode, namespace=namespace)
    assert declaring.facts.about("Dan", namespace=namespace) == []


def test_add_many_maps_records_to_facts(declaring, namespace):
    mapping = {**JOBS, "source_id": "$.id", "source": "hr", "subject_type": "Person"}
    added = declaring.facts.add_many([RECORD, {"id": 8}], mapping=mapping, namespace=namespace)
    assert [len(result.facts) for result in added] == [2, 0]
    assert added[1].unmapped == ("mapping 1: subject $.employee.name is missing",)
    (episode,) = [each for each in declaring.episodes.list(namespace=namespace) if each.source_id == "7"]
    assert episode.source == "hr"
    again = declaring.facts.add_many([RECORD], mapping=mapping, namespace=namespace)
    assert [result.new for result in again] == [False]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$.a.b", ["x"]),
        ("$.list[0]", ["p"]),
        ("$.list[-1]", ["q"]),
        ('$["odd key"].c', ["y"]),
        ("$$.a", ["$.a"]),
        ("$.list", [("p", "q")]),
        ("$.list[*]", ["p", "q"]),
        ("$.deep[*].list[*]", ["1", "2", "3"]),
        ("$.n", ["5"]),
        ("$.list[9]", []),
        ("$.a.b.c", []),
        ("$.none", []),
        ("$.empty", []),
        ("$.empty[*]", []),
        ("$.a[*]", []),
    ],
)
def test_mapping_paths_select_values(value, expected):
    record = {
        "a": {"b": "x"}, "list": ["p", "q"], "odd key": {"c": "y"}, "n": 5, "none": None, "empty": [],
        "deep": [{"list": ["1", "2"]}, {"list": ["3"]}],
    }  # fmt: skip
    mapped = RecordMapping({"subject": "S", "predicate": "p", "object": value}).apply(record)
    wanted = [one if isinstance(one, tuple) else (one,) for one in expected]
    assert [fact.objects for fact in mapped.facts] == wanted
    assert bool(mapped.unmapped) == (not expected and value != "$.empty[*]")


INVALID = (
    ({}, "a subject and a predicate"),
    ([], "non-empty list"),
    ("x", "dict or a non-empty list"),
    ({"subject": "$.a", "predicate": "p", "objekt": 1}, "objekt"),
    ({"subject": "$.a..b", "predicate": "p"}, r"invalid path .* character 4"),
    ({"subject": "$a", "predicate": "p"}, "invalid path"),
)


def test_invalid_mapping_is_refused(declaring, namespace):
    for mapping, problem in INVALID:
        with pytest.raises(InputError, match=problem):
            declaring.facts.add_many([RECORD], mapping=mapping, namespace=namespace)
    with pytest.raises(InputError):
        declaring.add("I live in Oslo", mapping=JOBS, namespace=namespace)
    with pytest.raises(InputError, match="content must be JSON"):
        declaring.add("{", kind="json", mapping=JOBS, namespace=namespace)
    assert declaring.stats(namespace=namespace).episodes == 0


def test_declare_command_adds_one_fact_and_files(server, tmp_path, capsys, namespace):
    where = ["--url", server.url, "-n", namespace, "--model", "offline", "--json"]

    def run(*words):
        return main(["declare", *map(str, words), *where]), capsys.readouterr()

    code, output = run("Ann", "WORKS_AT", "Acme", "--valid-at", "2020")
    assert (code, json.loads(output.out)["facts"]) == (0, 1)
    table = tmp_path / "people.csv"
    rows = 'Ann,WORKS_AT,"Beta, Inc.",2022,0.9\nBo,is retired,,,\n'
    table.write_text(f"subject,predicate,object,valid_at,confidence\n{rows}")
    code, output = run("--file", table)
    assert json.loads(output.out)["ended"] == ["Ann works at Acme"]
    code, output = run("--file", table)
    assert (json.loads(output.out)["facts"], json.loads(output.out)["again"]) == (0, 2)
    records, mapping = tmp_path / "records.jsonl", tmp_path / "mapping.json"
    records.write_text("\n".join(map(json.dumps, (RECORD, {"id": 8}))))
    mapping.write_text(json.dumps({**JOBS, "source_id": "$.id"}))
    code, output = run("--file", records, "--mapping", mapping)
    assert (json.loads(output.out)["facts"], len(json.loads(output.out)["unmapped"])) == (2, 1)
    for bad, problem in (
        ("subject,predicate\nAnn\n", "as many cells"),
        ("subject,predicate,trust\nA,b,x\n", "a number"),
        ("a,b\n1,2\n", "row 1"),
    ):
        table.write_text(bad)
        code, output = run("--file", table)
        assert (code, problem in output.err) == (1, True), output.err
    assert run("Ann")[0] == 1


def test_add_many_continues_after_an_aborted_episode(declaring, namespace, database):
    figs = {"subject": "Ann", "predicate": "LIKES", "object": "figs", "source_id": "1", "at": "2025-01-01"}
    declaring.facts.add_many([figs], namespace=namespace)
    aborted = "MATCH (e:Episode) SET e.status = 'saved', e.interrupted = 3"
    database.query(declaring.driver.key(namespace), aborted, {}, write=True)
    rows = [("Ann", "LIKES", "tea"), figs, ("Bo", "LIKES", "rice")]
    added = declaring.facts.add_many(rows, namespace=namespace)
    assert [each.status for each in added] == ["done", "failed", "done"]
    assert "retry()" in added[1].error
