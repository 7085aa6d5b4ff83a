"""The verb patterns that the offline reader knows, English and Chinese, each with what it tells of its object."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kg_memory.offline.spans import ORGANISATION, PERSON, PLACE, PRODUCT, TOPIC

Change = Literal["is", "ends", "plans", "happens", "passes", "never"]

FUNCTIONAL = frozenset({"LIVES_IN", "WORKS_AT", "WORKS_AS", "STUDIES_AT", "IS_MARRIED_TO", "IS_IN_RELATIONSHIP_WITH"})
"""Predicates that hold for one object at a time."""
OPPOSITES = {"LIKES": "DISLIKES", "DISLIKES": "LIKES", "PREFERS": "PREFERS", "USES": "USES"}
NOT = "NOT_"
"""How the predicate of what is not so now begins."""
DENIABLE = frozenset({"LIVES_IN", "WORKS_AT", "USES"})
"""Predicates whose plain denial ("I don't use Flask") is a fact of its own."""
SINGLE = FUNCTIONAL | OPPOSITES.keys() | {NOT + one for one in DENIABLE}
"""Predicates whose statements take no further object from their sentence."""

STATES: dict[str, tuple[str, str]] = {
    "LIVES_IN": ("lives in", "住在"),
    "WORKS_AT": ("works at", "工作于"),
    "WORKS_AS": ("works as", "的工作是"),
    "STUDIES_AT": ("studies at", "就读于"),
    "IS_MARRIED_TO": ("is married to", "的配偶是"),
    "IS_IN_RELATIONSHIP_WITH": ("is in a relationship with", "的恋人是"),
    "USES": ("uses", "使用"),
    "PREFERS": ("prefers", "更喜欢"),
    "LIKES": ("likes", "喜欢"),
    "DISLIKES": ("dislikes", "不喜欢"),
    "IS_A": ("is", "是"),
    "VOLUNTEERS_AT": ("volunteers at", "做志愿者于"),
    "STAYS_IN": ("is staying in", "暂住在"),
    "TEMPORARILY_WORKS_AT": ("works for a while at", "暂时工作于"),
    "TEMPORARILY_WORKS_AS": ("works for a while as", "暂时的工作是"),
    "TEMPORARILY_STUDIES_AT": ("studies for a while at", "暂时就读于"),
}
"""What lasts until something else is said, and how it is said in both languages."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A verb phrase; what follows it is the object, of type `kind` where its type is not known.

    `is`: a state that holds now; `passes`: one that will soon be over; `ends`: one that no longer holds;
    `never`: one that never did; `happens`: an event; `plans`: a plan.
    `free`: whatever words follow are the object, though nothing is known of them.
    """

    predicate: str
    verb: re.Pattern[str]
    change: Change
    kind: str = TOPIC
    free: bool = False


def _english(predicate: str, verb: str, change: Change, kind: str = TOPIC, *, free: bool = False) -> Pattern:
    return Pattern(predicate, re.compile(rf"\b(?:{verb})(?=\s)", re.IGNORECASE), change, kind, free)


_JOB = r"(?:a|my|the)?\s?(?:new |old |first |current )?(?:job|position|role|internship|gig)"
ENGLISH: tuple[Pattern, ...] = (
    # Places and work: what ends stands before what begins, so that "no longer work at" is not "work at".
    _english(
        "LIVES_IN",
        r"(?:used to live|no longer (?:live|lives)|(?:don't|doesn't) live|stopped living) (?:in|at)|lived in",
        "ends",
        PLACE,
        free=True,
    ),
    _english(
        "LIVES_IN", r"(?:moved|relocated|emigrated)(?: (?:away|back|out|over|here))? from", "ends", PLACE, free=True
    ),
    _english(
        "LIVES_IN",
        r"(?:have |has |'ve |'s )?(?:just |recently |finally )?(?:moved|relocated|emigrated|settled)(?: (?:back|"
        r"out|over|down|in))?(?: to| into| in)",
        "is",
        PLACE,
        free=True,
    ),
    _english(
        "LIVES_IN",
        r"(?:live|lives|living|reside|resides|residing|based|located)"
        r"(?: (?:now|here|currently|alone)| with [^,.;]{2,25}?)? (?:in|at)",
        "is",
        PLACE,
        free=True,
    ),
    _english("LIVES_IN", r"(?:am|'m|are|'re|is|'s)(?: finally| now)? back(?: home| living)? in", "is", PLACE),
    _english(
        "STAYS_IN",
        r"(?:staying|crashing|couch-?surfing)(?: (?:over|here|currently))? (?:in|at|with)|visiting|"
        r"(?:am|'m|are|'re|is|'s)(?: (?:currently|now|only|just|still|here|over|away|down|up))* (?:in|at)",
        "passes",
        PLACE,
    ),
    _english(
        "WORKS_AT",
        rf"(?:no longer (?:work|works|working)|used to work|(?:don't|doesn't) work|stopped working|worked) (?:at|"
        rf"for)|(?:quit|left|lost|resigned from) {_JOB} (?:at|with)|(?:resigned|fired|laid off) (?:from|by|at)",
        "ends",
        ORGANISATION,
        free=True,
    ),
    _english(
        "WORKS_AT",
        rf"(?:work|works|working|employed)(?: (?:part|full)[- ]time| remotely| now| currently)? (?:at|for)|(?:got|"
        rf"have|has|landed|started|accepted|took|begin|"
        rf"began) {_JOB} (?:at|with)|(?:was |been |got )?hired (?:by|at)|started(?: working)? at|joined",
        "is",
        ORGANISATION,
    ),
    _english("WORKS_AS", r"(?:no longer (?:work|works|working)|used to work|worked) as an?", "ends", free=True),
    _english(
        "WORKS_AS",
        r"(?:work|works|working) as an?|(?:got |been |was )?promoted to|(?:became|started as) an?",
        "is",
        free=True,
    ),
    _english(
        "STUDIES_AT",
        r"(?:graduated from|dropped out of|used to (?:study|go to school) at|no longer (?:study|studies) at)",
        "ends",
        ORGANISATION,
    ),
    _english("STUDIES_AT", r"(?:study|studies|studying|studied|enrolled|enrolling) (?:at|in)", "is", ORGANISATION),
    # One person and another.
    _english("IS_MARRIED_TO", r"(?:divorced(?: from)?|separated from|got divorced from)", "ends", PERSON),
    _english("IS_MARRIED_TO", r"(?:got |am |is |are |been |'m )?married(?: to)?", "is", PERSON),
    _english(
        "IS_IN_RELATIONSHIP_WITH",
        r"(?:broke up with|split up with|no longer dating|stopped dating|dumped)",
        "ends",
        PERSON,
    ),
    _english(
        "IS_IN_RELATIONSHIP_WITH",
        r"(?:dating|engaged to|going out with|in a relationship with|together with)",
        "is",
        PERSON,
    ),
    _english(
        "MET", r"(?:met|ran into|caught up with|hung out with|had (?:lunch|dinner|coffee) with)", "happens", PERSON
    ),
    # Tools and tastes.
    _english(
        "USES",
        r"(?:stopped using|no longer (?:use|uses|using)|used to use|(?:don't|doesn't) use|gave up(?: on)?|"
        r"got rid of|cancel(?:l)?ed|moved off|(?:switched|migrated) (?:away )?from|"
        r"(?:changed|switched|upgraded|moved|migrated) (?:my |our |the )(?:\w+ ){0,2}from)",
        "ends",
        PRODUCT,
        free=True,
    ),
    _english("DOES", r"(?:quit|gave up|stopped)(?= \w+ing\b)", "ends", free=True),
    _english("WORKS_AT", r"(?:left|quit|leaving)", "ends", ORGANISATION),
    _english(
        "USES",
        r"(?:decided to use|opted for|use|uses|using|switched(?: over)? to|switching to|migrated to|upgraded to|"
        r"changed to|started using)",
        "is",
        PRODUCT,
        free=True,
    ),
    _english(
        "DISLIKES",
        r"(?:hate|hates|dislike|dislikes|can't stand|(?:don't|doesn't|do not|never) (?:really )?(?:like|enjoy|"
        r"love)d?|no longer (?:like|likes|enjoy|love)|not a (?:big )?fan of|allergic to|sick of)",
        "is",
    ),
    _english("PREFERS", r"(?:prefer|prefers|preferred)|would rather|'d rather", "is", free=True),
    _english("LIKES", r"favou?rite (?:\w+ ){1,3}(?:is|are|was|were|has always been)", "is", free=True),
    _english(
        "LIKES",
        r"(?:love|loves|loved|loving|like|likes|liked|adore|adores|enjoy|enjoys|enjoyed|enjoying|fond of|keen on|"
        r"into|passionate about|passion for|(?:big |huge )?fan of|obsessed with|interested in|value|appreciate)",
        "is",
    ),
    # What was done.
    _english(
        "PLANS",
        r"(?:(?:am |'m |are |is )?(?:planning|hoping|wanting|going|trying|intending|looking) to|gonna|wanna|"
        r"plan to|plans to|want to|wants to|hope to|would love to|'d love to|looking forward to|thinking (?:of|"
        r"about)|considering|will|'ll|planning|dream(?:ing)? of|can't wait (?:to|for)|looking into|"
        r"(?:am|'m|are|'re|is) (?:moving|heading|flying|relocating|travell?ing) to|"
        r"saving up for)",
        "plans",
    ),
    _english("IS_A", r"(?:am|is|'m|'s|was) no longer(?: an?)?", "ends", free=True),
    _english("JOINED", r"(?:signed up for|enrolled in|registered for)", "happens"),
    _english(
        "ENJOYED", r"had (?:a |an |so much |lots of |such a )?(?:\w+ ){0,2}?(?:time|blast|fun|experience)", "happens"
    ),
    _english(
        "VISITED",
        r"(?:went(?: back| out| over)? to|visited|traveled to|travelled to|flew to|drove to|been to|"
        r"took a trip to|trip to|stayed (?:in|at)|returned from|got back from|came back from|hiked|camped (?:in|"
        r"at))",
        "happens",
        PLACE,
    ),
    _english(
        "ATTENDED",
        r"(?:attended|participated in|took part in|took|competed in|performed (?:in|at)|spoke at|gave a (?:talk|"
        r"speech) (?:at|about)|volunteered (?:at|for)|ran)",
        "happens",
    ),
    _english("VOLUNTEERS_AT", r"(?:volunteer|volunteers|volunteering) (?:at|for|with)", "is", ORGANISATION),
    _english("BOUGHT", r"(?:bought|purchased|ordered|got myself|picked up|rented)", "happens", PRODUCT),
    _english("SOLD", r"(?:sold|gave away|donated)", "happens", PRODUCT),
    _english(
        "MADE",
        r"(?:made|created|painted|drew|wrote|built|designed|baked|cooked|developed|published|finished|composed|"
        r"organized|organised|hosted|put together)",
        "happens",
    ),
    _english("STARTED", r"(?:started(?! \w+ing\b)|launched|opened|founded|set up|took up|began)", "happens"),
    _english(
        "LEARNS",
        r"(?:started learning|learn|learning|learned|learnt|study|studying|studied|practice|practicing|practising)",
        "is",
    ),
    _english("READ", r"(?:read|reading|reread|finished reading)", "happens", PRODUCT),
    _english("WATCHED", r"(?:watched|watching|saw|seen)", "happens", PRODUCT),
    _english("PLAYS", r"(?:play|plays|playing|played)", "is"),
    _english(
        "RECEIVED",
        r"(?:received|was given|were given|got(?= (?:a|an|my|some|the|accepted|engaged|\d))|won|earned|inherited)",
        "happens",
    ),
    _english("LOST", r"(?:lost|missed|failed|broke)", "happens"),
    _english(
        "WORKS_ON",
        r"(?:work|works|worked|working|focusing|focused) (?:on|in|with)|researching|building|developing|running|"
        r"managing|leading|preparing(?: for)?",
        "is",
    ),
    _english(
        "HELPS",
        r"(?:help|helps|helped|helping|support|supports|supported|supporting|teach|teaches|taught|teaching|"
        r"mentor|mentors|mentoring|coach|coaching)",
        "is",
    ),
    _english("THINKS", r"(?:think|believe|realized|realised|realizing|feel|felt|learned that|know|find|found)", "is"),
    _english(
        "HAS",
        r"(?:have|has|had|own|owns|adopted|keep|'ve got|have got)(?!\s(?:been|to|\w+ed|not|never|always|just|"
        r"already|ever|gone|had)\b)",
        "is",
    ),
    _english(
        "IS_FROM",
        r"(?:am|is|'m|'s|are|come|comes|came|originally) from|(?:was |were )?(?:born|raised) in|grew up in",
        "is",
        PLACE,
        free=True,
    ),
    _english("IS_A", r"(?:I'm|I am|(?:he|she)'s|is|was) an?", "is"),
)


def _chinese(predicate: str, verb: str, change: Change, kind: str = TOPIC, *, free: bool = False) -> Pattern:
    return Pattern(predicate, re.compile(verb), change, kind, free)


_NO_LONGER = r"(?:不再|没再|不|没有再|已经不)"
CHINESE: tuple[Pattern, ...] = (
    _chinese(
        "LIVES_IN",
        rf"(?:以前|之前|曾经?|原来|过去)(?:一直)?住在|{_NO_LONGER}住(?:在)?|从(?=[^，。]{{1,12}}(?:搬|移居))|"
        rf"搬离了?|搬出了?|"
        rf"离开了?(?=[^，。]{{2,8}}(?:市|省|县|镇))",
        "ends",
        PLACE,
        free=True,
    ),
    _chinese(
        "LIVES_IN",
        r"搬(?:家)?(?:到|去|回|来|进)了?|移居到?|定居在?|(?:现在|目前)?(?:居)?住在|落户",
        "is",
        PLACE,
        free=True,
    ),
    _chinese(
        "STAYS_IN",
        r"(?:借住|暂住|暂居|待|呆)在|在(?=[^，。在]{1,8}(?:待|呆|出差|度假|旅游|旅行|探亲|(?:[，。！]|$)))|"
        r"(?:去|到|来)了?(?=[^，。在]{1,8}出差)",
        "passes",
        PLACE,
        free=True,
    ),
    _chinese(
        "WORKS_AT",
        rf"从(?=[^，。]{{1,16}}(?:离职|辞职|跳槽))|{_NO_LONGER}在(?=[^，。]{{1,16}}(?:工作|上班|任职))|(?:以前|之前|"
        rf"曾经?|原来|"
        rf"过去)在(?=[^，。]{{1,16}}(?:工作|上班|任职))|离开了?(?=[^，。]{{1,12}}(?:公司|集团|银行|工作室|出版社|"
        rf"报社|书店|商店|工厂|医院|学校|大学|研究所))",
        "ends",
        ORGANISATION,
        free=True,
    ),
    _chinese(
        "WORKS_AT",
        r"加入了?|入职了?|跳槽(?:到|去)了?|就职于|任职于|供职于|(?:现在|目前|开始)?在(?=[^，。在]{1,16}(?:工作|上班|"
        r"任职|实习))",
        "is",
        ORGANISATION,
        free=True,
    ),
    _chinese(
        "WORKS_AS",
        r"(?:现在|目前)?(?:担任|当上?了?|升(?:职|任)?为|做了?)(?=[^，。]{0,6}(?:师|员|经理|总监|主管|工程师|老师|"
        r"医生|教练|律师))",
        "is",
        TOPIC,
        free=True,
    ),
    _chinese("STUDIES_AT", r"毕业于|从(?=[^，。]{2,12}毕业)", "ends", ORGANISATION, free=True),
    _chinese(
        "STUDIES_AT",
        r"就读于|考(?:上|入)了?|在(?=[^，。在]{2,12}(?:读书|上学|读研|读博|留学))",
        "is",
        ORGANISATION,
        free=True,
    ),
    _chinese("IS_IN_RELATIONSHIP_WITH", r"(?:和|跟|与)(?=[^，。]{1,8}(?:分手|离婚))", "ends", PERSON, free=True),
    _chinese("IS_MARRIED_TO", r"(?:和|跟|与)(?=[^，。]{1,8}结婚)|嫁给了?|娶了", "is", PERSON, free=True),
    _chinese(
        "IS_IN_RELATIONSHIP_WITH", r"(?:和|跟|与)(?=[^，。]{1,8}(?:在一起|恋爱|订婚|交往))", "is", PERSON, free=True
    ),
    _chinese(
        "USES",
        rf"从(?=[^，。从]{{1,16}}(?:换|改|切换|迁移|转|升级)(?:成|到|为|用|向))|{_NO_LONGER}(?:使)?用|(?:以前|之前|"
        rf"原来|过去|"
        rf"曾经?)(?:一直)?(?:使)?用|放弃了?|停用了?",
        "ends",
        PRODUCT,
        free=True,
    ),
    _chinese(
        "USES",
        r"改(?:成|为)?用了?|(?:换|切换|迁移|升级|转)(?:成|到|为|向|用)了?|(?:开始|现在|目前|一直|正在|都|"
        r"在)(?:使)?用|使用",
        "is",
        PRODUCT,
        free=True,
    ),
    _chinese("DISLIKES", r"不(?:太|再|怎么)?(?:喜欢|爱)|讨厌|受不了|对(?=[^，。]{1,8}过敏)", "is", TOPIC, free=True),
    _chinese("DOES", r"不再|戒(?:掉)?了?", "ends", TOPIC, free=True),
    _chinese("DOES", r"改(?=喝|吃|骑|坐|看|学|做|练)", "is", TOPIC, free=True),
    _chinese("PREFERS", r"(?:更|比较|最)(?:喜欢|爱)|宁愿|宁可|偏爱|偏好", "is", TOPIC, free=True),
    _chinese(
        "LIKES",
        r"(?:很|非常|特别|一直)?(?:喜欢|热爱|爱上了?|迷上了?|(?<!可)爱)(?!人|心|情|了)|对(?=[^，。]{1,8}(?:感兴趣|"
        r"有兴趣))",
        "is",
        TOPIC,
        free=True,
    ),
    _chinese(
        "PLANS",
        r"打算|计划|准备|想(?:要)?(?=去|学|买|做|换|搬|找|开)|希望|将(?:要|会)?|(?:下周|下个?月|明天|明年|"
        r"后天).{0,4}(?:要|会|去)|报名了?",
        "plans",
        TOPIC,
    ),
    _chinese(
        "VISITED",
        r"去(?:了|过)|参观了?|到(?:了|过)|游览了?|旅游去了?|(?:昨天|上周|上个月|去年|前天).{0,3}去",
        "happens",
        PLACE,
    ),
    _chinese("ATTENDED", r"参加了?|出席了?|报考了?", "happens"),
    _chinese("BOUGHT", r"买了?(?:一[^，。]{1})?|购买了?|入手了?", "happens", PRODUCT),
    _chinese("MET", r"(?:遇到|认识|见到|碰到|见)了", "happens", PERSON),
    _chinese("MADE", r"(?<!离)(?:做|写|画|开|创办|成立|建|完成|发布|组织|设计|开发)了", "happens"),
    _chinese("LEARNS", r"(?:在|正在|开始)?(?:学习?|练习?|自学)(?!校|生|院|期|费)", "is"),
    _chinese("READ", r"(?:读|看)(?:了|完|过|完了)", "happens", PRODUCT),
    _chinese("HAS", r"(?:养|领养)了?(?!成|老)|拥?有(?=[一两三四五几]?[个位只条])", "is", free=True),
    _chinese("IS_FROM", r"来自|出生(?:在|于)|老家(?:在|是)|是(?=[^，。]{2,6}人(?:[，。]|$))", "is", PLACE, free=True),
    _chinese("WORKS_ON", r"(?:负责|从事|研究|忙着|正在做|主导)", "is"),
    _chinese("IS_A", r"是(?:一[名个位])?", "is"),
)
