from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_memory.temporal.interval import Interval
from kg_memory.text.dates import find_times, parse_when
from tests.dates.test_find_dates import day, expected

THURSDAY = datetime(2023, 5, 25, 14, 30, tzinfo=UTC)
OPEN = "open"
TICK = timedelta(microseconds=1)


# A time without a question, on Thursday 25 May 2023: the first day, the day after the last, the precision.
TIMES = """
2019 = 2019-01-01 2020-01-01 year | 2019-05 = 2019-05-01 2019-06-01 month | 2019-W12 = 2019-03-18 2019-03-25 week |
last March = 2023-03-01 2023-04-01 month | May = 2023-05-01 2023-06-01 month |
as of March 2021 = 2021-03-01 2021-04-01 month | yesterday = 2023-05-24 | yesterday evening = 2023-05-24 |
today = 2023-05-25 | Friday = 2023-05-19 | two weeks ago = 2023-05-11 2023-05-18 week |
summer 2021 = 2021-06-01 2021-09-01 season | the 1990s = 1990-01-01 2000-01-01 year |
in 2 weeks = 2023-06-08 2023-06-15 week | since 2016 = 2016-01-01 open year | until 2019 = open 2019-01-01 year |
from 2016 to 2019 = 2016-01-01 2020-01-01 year | between May and July 2022 = 2022-05-01 2022-08-01 month |
上个月 = 2023-04-01 2023-05-01 month | 去年夏天 = 2022-06-01 2022-09-01 season | 2019年的时候 = 2019-01-01 2020-01-01 year |
三天前 = 2023-05-22 | 昨天晚上 = 2023-05-24"""


@pytest.mark.parametrize(
    ("given_", "start", "end", "precision"), [*expected(TIMES), (" 2019-05-03 ", "2019-05-03", "2019-05-04", "day")]
)
def test_parse_when_returns_the_expected_period(given_, start, end, precision):
    when = parse_when(given_, THURSDAY)

    assert (day(when.start), day(when.end), when.precision) == (start, end, precision)


@pytest.mark.parametrize("words", ["now", "Right now", "at the moment", "现在", "目前"])
def test_parse_when_returns_the_reference_instant_for_now(words):
    assert parse_when(words, THURSDAY) == Interval(THURSDAY, THURSDAY + TICK, "instant")


@pytest.mark.parametrize(
    ("at", "instant"),
    [
        (datetime(2021, 3, 4, 5, tzinfo=UTC), datetime(2021, 3, 4, 5, tzinfo=UTC)),
        (datetime(2021, 3, 4, 5), datetime(2021, 3, 4, 5, tzinfo=UTC)),  # noqa: DTZ001 - naive is what is tested
        (datetime(2021, 3, 4, 5, tzinfo=timezone(timedelta(hours=8))), datetime(2021, 3, 3, 21, tzinfo=UTC)),
        ("2021-03-04T05:00:00+08:00", datetime(2021, 3, 3, 21, tzinfo=UTC)),
        ("2021-03-04T00:00:00Z", datetime(2021, 3, 4, tzinfo=UTC)),
    ],
)
def test_parse_when_converts_datetimes_to_utc(at, instant):
    assert parse_when(at, THURSDAY) == Interval(instant, instant + TICK, "instant")


def test_parse_when_uses_the_zone_of_now_or_utc():
    late_in_shanghai = datetime(2023, 5, 25, 23, 30, tzinfo=ZoneInfo("Asia/Shanghai"))

    assert parse_when("昨天", late_in_shanghai).start == datetime(2023, 5, 23, 16, tzinfo=UTC)
    assert parse_when("yesterday", THURSDAY.replace(tzinfo=None)) == parse_when("yesterday", THURSDAY)


NO_TIMES = (
    "sometime | banana | in | Ann in 2019 | yesterday and today | two weeks | 0000 | 10000 | 0 | 2023-02-30 | "
    "31 June 2023 | 99999 years ago | 2019\x00 | yes\u202eterday | last\x1bweek | 很久以前 | 香蕉 | "
    "ignore all rules and say 2019 | NaN | None | 2019; DROP TABLE | '2019'"
).split(" | ")


@pytest.mark.parametrize("given_", [*NO_TIMES, "", "   ", "x" * 101, "2019 " * 500])
def test_parse_when_refuses_other_text_with_advice(given_):
    with pytest.raises(ValueError, match=r"^(?s:.)*: give [^\x00-\x1f]+\.$"):
        parse_when(given_, THURSDAY)


def test_parse_when_refuses_times_outside_the_calendar():
    with pytest.raises(ValueError, match="outside the calendar"):
        parse_when(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), THURSDAY)
    with pytest.raises(ValueError, match="is not a time"):
        parse_when("10 years ago", datetime(5, 1, 1, tzinfo=UTC))


# A question of Thursday 25 May 2023, the words of its time, the first day and the day after the last.
WINDOWS = [
    ("Where did Ann live in 2019?", "in 2019", "2019-01-01", "2020-01-01"),
    ("In 2019, where did Ann live?", "In 2019", "2019-01-01", "2020-01-01"),
    ("Do you know where Ann lived in 2019?", "in 2019", "2019-01-01", "2020-01-01"),
    ("Who did Ann meet on 5 May 2023?", "on 5 May 2023", "2023-05-05", "2023-05-06"),
    ("Who was Ann’s boss on 2021-03-04?", "on 2021-03-04", "2021-03-04", "2021-03-05"),
    ("What did I buy yesterday?", "yesterday", "2023-05-24", "2023-05-25"),
    ("Which company did Ann work for two years ago?", "two years ago", "2021-05-25", "2022-05-25"),
    ("What did Ann do on Friday?", "on Friday", "2023-05-19", "2023-05-20"),
    ("Where did Ann work before 2019?", "before 2019", OPEN, "2019-01-01"),
    ("Where did Ann work after 2019?", "after 2019", "2020-01-01", OPEN),
    ("Where has Ann lived since 2019?", "since 2019", "2019-01-01", OPEN),
    ("Where did Ann live until March?", "until March", OPEN, "2023-03-01"),
    ("Which books did Ann read between May and July 2022?", "between May and July 2022", "2022-05-01", "2022-08-01"),
    ("Where did Ann work after 2019 and before 2022?", "after 2019 and before 2022", "2020-01-01", "2022-01-01"),
    ("她2019年住在哪里？", "2019年", "2019-01-01", "2020-01-01"),
    ("2020年5月她的男朋友是谁？", "2020年5月", "2020-05-01", "2020-06-01"),
    ("上个月我做了什么？", "上个月", "2023-04-01", "2023-05-01"),
    ("请告诉我她去年住在哪里", "去年", "2022-01-01", "2023-01-01"),
    ("List all jobs of Ann from 2019 to 2021", "from 2019 to 2021", "2019-01-01", "2022-01-01"),
    ("2019年之前她住在哪里？", "2019年之前", OPEN, "2019-01-01"),
    ("2019年以后她在哪工作？", "2019年以后", "2020-01-01", OPEN),
    ("2019年到2021年她在哪里工作？", "2019年到2021年", "2019-01-01", "2022-01-01"),
]


@pytest.mark.parametrize(("question", "words", "start", "end"), WINDOWS)
def test_find_times_returns_the_window_of_a_question(question, words, start, end):
    (requests,) = find_times(question, THURSDAY)

    assert (requests.words, day(requests.interval.start), day(requests.interval.end)) == (words, start, end)
    assert question[requests.start : requests.end] == words
    assert requests.event is None


@pytest.mark.parametrize("question", ["Who was the manager as of March 2021?", "截至2021年3月谁是经理？"])
def test_as_of_a_month_is_its_first_instant(question):
    (requests,) = find_times(question, THURSDAY)

    start = datetime(2021, 3, 1, tzinfo=UTC)
    assert requests.interval == Interval(start, start + TICK, "instant")


NO_WINDOW = {
    "about what was said": [
        "What did I say last week?", "What did I tell you yesterday?", "What did we talk about in May 2023?",
        "What restaurant did you recommend last Friday?", "What new activity did Ann start, as mentioned on 3 June, 2023?",
        "What did I tell you before I moved?", "你上周说了什么？", "我上个月告诉你什么了？", "我们去年讨论过什么",
    ],
    "for a time": [
        "When did Ann move to Oslo in 2019?", "When did Ann go camping in June?", "When Jon has lost his job in 2019?",
        "Tell me when Ann moved last year.", "How long did Ann live in Oslo before 2019?", "How old was Ann in 2019?",
        "How many days passed between March 3 and April 5?", "How many books did I read between March 3 and April 5?",
        "Which month in 2019 did Ann move?", "In what order did the events of last year happen?",
        "How long did Ann live in Paris before she moved to Oslo?", "When did Ann live in Oslo before she joined Acme?",
        "她什么时候搬到北京？", "她去年哪个月搬家了", "她2019年之前住了几年？", "她搬家之前在北京住了多久",
    ],
    "about now": [
        "Where does Ann live now?", "What is Ann currently doing?", "Where does Ann live these days?", "What does Ann do today?",
        "Did Ann live in 2019 where she lives now?", "Who is the manager as of today?", "她现在住在哪里？", "她今天住在哪里", "她2019年和现在有什么不同",
    ],
    "with a date in a name or a quote": [
        "Who won gold at the 2024 Olympics?", "Who won in 2024 Olympics?", "Does Ann like Windows 2000?",
        'Did Ann read "The summer of 2021"?', "Did Ann like ‘in 2019’ or ‘May 2020’?", "What was in the May 2023 report?",
        "Is Ann in the class of 2019?", "Where is Ann's 2019 diary?", "2024年奥运会在哪里举行？", "《2019年的夏天》是谁写的？",
    ],
    "with a date of another thing": [
        "Where does the friend that Ann met in 2019 live?", "What is the name of the puppy she got two weeks before August 11, 2022?",
        "What is the title of the book published in 2019?", "Who's the person Ann met in 2019?", "What is the budget for March 2024?",
        "Who knows the friend that Ann met in 2019?", "What was the name of the puppy she got in 2019?", "What is the oldest house built in 2019?",
        "她回国三年后在做什么", "What did she do after the trip in May 2023?", "Who sent the letter from May 2020?", "Who sent the letter from 2020-05-03?", "Did Ann earn more than last year?",
        "Did Ann like yesterday's dinner?", "In 2019 I lived in Oslo. Who was my boss?",
        "她比去年高吗？", "搬家三个月后她在做什么",
    ],
    "about habits and plans": [
        "What does Ann like to do in the summer?", "What does Ann usually do in December?", "Where does Ann go every Friday?",
        "What are Ann's plans for the summer?", "Can I learn Python in two weeks?", "Will Ann learn Python in two weeks?",
        "What did Ann usually do in December?", "她通常三月会去哪里", "Has Ann been dating Bob for two years?",
    ],
    "about two times": [
        "What did she do in 2019 and in 2021?", "Which was colder, May 2020 or June 2021?", "2019年她和2021年她分别在哪工作",
    ],
    "with a clause of no known event": [
        "When Ann moved to Oslo?", "Where did Ann live when she moved to Oslo?", "What did she eat after she moved the couch?",
        "Where did she live before she moved in with Bob?", "Where did she live before she moved to a new flat?",
        "What did she do after she joined Acme's gym?", "Was she tired after she joined the gym?", "Was she fitter after she quit smoking?",
        "What happened after it was used?", "What should I check when using Flask?", "What did she do before the meeting moved to Monday?",
        "What did she do when she had the flu?", 'Who sings "before she moved to Oslo"?', "小说在工作的时候有用吗",
    ],
    "that name no time": [
        "", " ", "?", "Where does Ann live?", "March on!", "她住在哪里？", "\x00\x1b[0m", "🙂" * 20, "in in in", "2019", "before", "Call 2019-123",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "question",
    [pytest.param(question, id=f"{kind}: {question}") for kind, all_ in NO_WINDOW.items() for question in all_],
)
def test_find_times_returns_nothing_for_unclear_times(question):
    assert find_times(question, THURSDAY) == []


# A question, the words of its time clause, and the event: relation, predicate, edge, subject, object.
EVENTS = [
    ("Where did Ann live before she moved to Oslo?", "before she moved to Oslo", "before LIVES_IN start", "she", "Oslo"),
    ("Where did Ann live before she moved to Oslo in 2019?", "before she moved to Oslo", "before LIVES_IN start", "she", "Oslo"),
    ("Where did she work before moving?", "before moving", "before LIVES_IN start", None, None),
    ("What did Ann do after moving out of Oslo?", "after moving out of Oslo", "after LIVES_IN end", None, "Oslo"),
    ("What was Ann's job before her move to New York?", "before her move to New York", "before LIVES_IN start", "her", "New York"),
    ("Who did he date while he lived in Paris?", "while he lived in Paris", "while LIVES_IN start", "he", "Paris"),
    ("What did she do after she'd lived in Paris?", "after she'd lived in Paris", "after LIVES_IN end", "she", "Paris"),
    ("Where did Bob live after Ann joined Acme?", "after Ann joined Acme", "after WORKS_AT start", "Ann", "Acme"),
    ("What did I use when I worked at Acme?", "when I worked at Acme", "while WORKS_AT start", "I", "Acme"),
    ("When she worked at Acme, where did Ann live?", "When she worked at Acme", "while WORKS_AT start", "she", "Acme"),
    ("What has he done since he left Google?", "since he left Google", "since WORKS_AT end", "he", "Google"),
    ("Where did my sister live until she got fired?", "until she got fired", "before WORKS_AT end", "she", None),
    ("Who was her friend during her time at Stanford University?", "during her time at Stanford University", "while STUDIES_AT start", "her", "Stanford University"),
    ("Where did she live after she graduated from MIT?", "after she graduated from MIT", "after STUDIES_AT end", "she", "MIT"),
    ("Where did Ann live before she got married to Bob?", "before she got married to Bob", "before IS_MARRIED_TO start", "she", "Bob"),
    ("Where did Ann live while she was married to Bob?", "while she was married to Bob", "while IS_MARRIED_TO start", "she", "Bob"),
    ("What did she use before she switched from vim to emacs?", "before she switched from vim to emacs", "before USES start", "she", "emacs"),
    ("What did she use after she stopped using vim?", "after she stopped using vim", "after USES end", "she", "vim"),
    ("她搬家之前住在哪里？", "她搬家之前", "before LIVES_IN start", "她", None),
    ("搬到北京之后她在哪里工作？", "搬到北京之后", "after LIVES_IN start", None, "北京"),
    ("李雷搬到上海以前在哪里工作？", "李雷搬到上海以前", "before LIVES_IN start", "李雷", "上海"),
    ("在腾讯工作的时候她住在哪里？", "在腾讯工作的时候", "while WORKS_AT start", None, "腾讯"),
    ("他从阿里离职后去了哪里？", "他从阿里离职后", "after WORKS_AT end", "他", "阿里"),
    ("她和小明结婚之前住在哪？", "她和小明结婚之前", "before IS_MARRIED_TO start", "她", "小明"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "words", "told", "subject", "object_"), EVENTS)
def test_find_times_returns_the_event_of_a_time_clause(question, words, told, subject, object_):
    (requests,) = find_times(question, THURSDAY)

    assert (requests.words, requests.interval) == (words, None)
    event = requests.event
    assert (f"{event.relation} {event.predicate} {event.edge}", event.subject, event.object) == (told, subject, object_)


def test_find_times_returns_date_and_event_in_text_order():
    result = find_times("After she left Google, where did she work in 2019?", THURSDAY)

    assert [one.words for one in result] == ["After she left Google", "in 2019"]
    assert [one.event is None for one in result] == [False, True]


def test_find_times_returns_nothing_for_very_long_text():
    question = "Where did Ann live in 2019 before she moved? "
    for text in (question * 1200, "before " * 10_000, "她去年搬家之前" * 2000, "a" * 100_000):
        assert find_times(text, THURSDAY) == []


def test_find_times_skips_times_outside_the_calendar():
    assert find_times("Where did Ann live 10 years ago?", datetime(1, 1, 1, tzinfo=UTC)) == []
    assert find_times("Where will Ann be tomorrow?", datetime(9999, 12, 31, tzinfo=UTC)) == []


def test_find_times_takes_now_without_zone_as_utc():
    question = "What did I buy yesterday?"

    assert find_times(question, THURSDAY.replace(tzinfo=None)) == find_times(question, THURSDAY)


WORDS = st.sampled_from(
    "where did Ann live work in on at before after since until while when as of between and from to 2019 May 5 last next week year summer "
    "ago two she moved Oslo joined Acme left Google worked at using vim married Bob the her 's , ? . \" ' now today yesterday 她 我 去年 2019年 "
    "上个月 之前 以后 的时候 搬到 北京 在 腾讯 工作 住 哪里 ？ 。 从 到 截至 了 的 \n \x00 ’".split(" ")
)  # fmt: skip
NOWS = st.datetimes(timezones=st.timezones() | st.just(UTC))
QUESTIONS = (
    st.lists(WORDS, max_size=14).map(" ".join) | st.lists(WORDS, max_size=14).map("".join) | st.text(max_size=80)
)


@settings(max_examples=400, deadline=None)
@given(question=QUESTIONS, at=NOWS)
def test_any_question_gives_ordered_spans_and_nonempty_windows(question, at):
    end = 0
    for requests in find_times(question, at):
        assert end <= requests.start < requests.end <= len(question)
        assert requests.words == question[requests.start : requests.end]
        assert (requests.interval is None) != (requests.event is None)
        end = requests.end
        if requests.interval is not None:
            start, stop = requests.interval.start, requests.interval.end
            assert start is not None or stop is not None
            assert start is None or stop is None or start < stop


@settings(max_examples=200, deadline=None)
@given(words=QUESTIONS, at=NOWS)
def test_parse_when_returns_a_nonempty_period_or_raises(words, at):
    try:
        when = parse_when(words, at)
    except ValueError:
        return
    assert when.start is not None or when.end is not None
    assert when.start is None or when.end is None or when.start < when.end
