"""The words that the offline reader knows, by what they do in a sentence."""

from __future__ import annotations


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


PRONOUNS = _words(
    "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself we",
    "us our ours ourselves they them their theirs themselves this that these those who whom whose which what someone",
    "somebody something anyone anybody anything everyone everybody everything nobody nothing none one ones other",
    "others another each both either neither all any some many much more most few several such same else people folks",
    "guys person",
)
SUBJECTS = _words(
    "i you he she it we they who to i'll we'll you'll they'll he'll she'll it'll i'd we'd you'd they'd he'd she'd",
    "let's",
)
AUXILIARIES = _words(
    "am is are was were be been being do does did done doing have has had having will would shall should can could",
    "may might must ought gonna wanna gotta ain't isn't aren't wasn't weren't don't doesn't didn't haven't hasn't",
    "hadn't won't wouldn't shouldn't can't couldn't cannot i'm you're we're they're he's she's it's that's there's",
    "here's what's who's let's i've you've we've they've how's where's not never also always just still already",
    "really even ever only",
)
BE = _words(
    "am is are was were be been being i'm you're we're they're he's she's it's that's there's here's feel feels felt",
)
MODALS = _words(
    "to will would shall should can could may might must gonna wanna gotta don't doesn't didn't won't wouldn't",
    "shouldn't can't couldn't cannot not never let's do does did i'll we'll you'll they'll he'll she'll i'd we'd",
    "you'd they'd",
)
DETERMINERS = _words(
    "a an the my our your his her their its this that these those some any another every each no",
)
FUNCTION = _words(
    "longer unconditional a an the and or but nor so yet if then than because since while though although unless",
    "until till when whenever where wherever why how as at by for from in into of off on onto out over to toward",
    "towards under up upon with within without about above across after again against along among around before",
    "behind below beneath beside besides between beyond down during except inside like near outside past per plus",
    "through throughout via too very quite rather pretty almost maybe perhaps probably definitely certainly",
    "absolutely totally actually basically honestly seriously literally especially particularly currently recently",
    "lately finally usually often sometimes rarely once twice soon now here there today tonight yesterday tomorrow",
    "ago later earlier away back forward together apart alone instead anyway however well please no yes not only just",
    "even still ever never always already also kind sort kinda sorta bit lot lots tons bunch couple plenty enough",
    "less least next last first second third half whole main own different various anymore two three four five six",
    "seven eight nine ten twelve twenty hundred thousand million dozen zero certain recent able bound sure ready such",
    "etc vs y'all ya yep yup yeah nope nah ok okay oh ah wow hey hi hello bye thanks thank congrats congratulations",
    "lol haha hmm um uh omg woohoo yay aww whoa gosh damn dang cool awesome amazing great good nice best better worst",
    "worse bad big small little huge tiny new old young long short high low happy glad sad sorry proud excited",
    "thankful grateful blessed lucky tired busy stressed nervous scared worried important special incredible",
    "wonderful fantastic beautiful lovely super fun funny hard easy tough rough crazy interesting inspiring",
    "interested true real right wrong full free early late close far fast slow simple perfect favorite favourite",
    "fresh clear positive negative similar possible impossible necessary common personal yummy tasty delicious",
    "adorable cute gorgeous stunning impressive meaningful powerful rewarding exciting relaxing biggest closer",
    "farther further stronger harder easier faster bigger happier healthier resilient wild 'bout bout newest greatest",
    "closest nearest oldest youngest longest smallest largest highest latest earliest older younger smaller larger",
    "optimistic safe passionate cozy comfy priceless trans curious brave honest healthy modern lively crucial vital",
    "grand elegant stylish upset hurt alive awful terrible horrible mad angry lonely bored confused surprised shocked",
    "pumped stoked thrilled psyched determined motivated inspired focused dedicated committed chill cold hot warm",
    "dark heartwarming therapeutic magical serene vibrant colorful gentle fierce supportive creative artistic",
    "emotional extra bright solid serious open-minded kind-hearted physical mental social local public private final",
    "major minor top entire several upcoming present quick careful worthwhile pleased touched moved amazed awed",
    "impressed honored heard seen known gone done way super-excited fab epic rad legit fulfilling challenging",
    "overwhelming peaceful calm hopeful helpful useful unique strong deep open",
)
VAGUE_NOUNS = _words(
    "corner push chance destiny thing things stuff way ways time times day days week weeks weekend month months year",
    "years moment moments minute hour hours morning afternoon evening night today place places part parts bit point",
    "reason reasons kind sort type side end start beginning rest fact idea ideas question questions answer case deal",
    "matter luck news sec second example change difference sense word words number amount piece set line level step",
    "steps turn man guy guys girl woman people person someone anyone everyone folks lot lots ton tons bunch couple",
    "pair hand hands head heart eyes eye mind face pic pics photo photos picture pictures look feeling feelings",
    "thought thoughts world life experience experiences spring summer fall autumn winter monday tuesday wednesday",
    "thursday friday saturday sunday january february march april june july august september october november",
    "december course vibes vibe journey plan plans help support love fun joy happiness hope memories memory goal",
    "goals dream dreams opportunity opportunities kudos blast impact reminder cause effort efforts worth spirit shot",
    "view action actions horizon input quality importance session sessions sources source sides item items sound",
    "sounds plunge soul ride rides anything lesson lessons effect effects offer posts post comment work break breaks",
    "self others walk chapter milestone highlight views mood style smile smiles touch attitude perspective positivity",
    "understanding growth outlook space power energy comfort strength courage peace kindness compassion beauty",
    "passion passions encouragement progress success successes value values acceptance gratitude inspiration",
    "motivation determination patience resilience freedom trust respect ability result results form role reach tips",
    "advice shape past present stress pressure reality issue issues problem problems situation situations challenge",
    "challenges setback setbacks connection connections bond bonds detail details styles reaction feedback update",
    "updates message messages talk call chat catch-up mix path while gang bits ones tough outlet rocks rock force",
    "voice guide key need needs peeps money emotions emotion",
)
# Base forms; `verb_forms` makes the others.
VERBS = _words(
    "freeze seize treasure motivate inspire accept achieve act add admire admit adopt afford agree aim allow",
    "appreciate arrive ask attend avoid bake be become begin believe belong bet blow book borrow break bring build",
    "burn buy call care carry catch celebrate change chase chat check cheer cherish choose clean climb close collect",
    "come complete connect consider continue contact cook cost count cover create cross cry cut dance deal decide",
    "decorate dedicate define deserve design develop die discover discuss do donate draw dream dress drink drive drop",
    "earn eat embrace encourage end enjoy enroll escape expand expect experience explain explore express face fail",
    "fall feel fight figure fill find finish fit fix fly focus follow forget gather get give go grab grow guess",
    "handle hang happen hate have head heal hear help hide hike hit hold hope host hug hurt imagine improve include",
    "interact invite join journal jump keep kick know launch laugh lead learn leave lend let like listen live look",
    "lose love make manage marry matter mean meet mention mess mind miss move need notice offer open order organize",
    "overcome own paint participate pass pay perform pick plan plant play prefer prepare promise promote protect",
    "prove provide pull push put raise reach read realize receive recommend reduce relate relax rely remember remind",
    "rent research respect rest return ride run save say schedule see seem sell send serve set share shop show sign",
    "sing sit skip sleep smile sound speak spend stand start stay stick stop strengthen stress struggle study suggest",
    "support surprise surround swim switch take talk taste teach tell tend thank think throw transfer travel treat",
    "trust try turn understand update use value visit volunteer wait wake walk want warm wash watch wear welcome win",
    "wish wonder work worry write appear apply arrange assist attempt balance bond boost calm chill combine compete",
    "cuddle delve dig dive empower engage ensure exercise fulfil fulfill impact incorporate inform integrate",
    "introduce invest involve juggle lift maintain match network partner pursue refresh remain renovate reply report",
    "represent require resolve respond reward shape shift solve spark suit thrive track prioritise scale repair",
    "recover resume retire rehearse relocate rescue revise ruin rush satisfy scare score seek separate settle shoot",
    "shout sketch sort split spot squeeze steal stretch strike succeed suffer supply swap tackle target tempt test",
    "touch tour trade translate trip type unite upgrade upload urge vote warn wave whisper worsen yell advance",
    "advertise advise affect aid announce annoy approach approve argue arrest assess assign assure attach attract",
    "bother bounce brag brush bump bury calculate cancel cast challenge charge chop claim clarify coach collaborate",
    "comfort comment communicate compare complain concern confirm confuse contribute control convince cope correct",
    "deliver demand depend describe destroy determine differ dip disappear distract document doubt download edit",
    "educate eliminate emphasize enable encounter entertain establish evaluate examine exchange excite exist",
    "experiment explode fetch film fire fold foster fund gain generate greet hire identify ignore implement imply",
    "impose increase indicate influence inspect install insist interpret interview judge justify label load lock log",
    "mail mark melt merge migrate mix mourn navigate negotiate nurture obtain occupy occur operate outline pack park",
    "patch persuade picture pitch pour praise predict press pretend prevent print proceed process produce propose",
    "purchase quit question react rebuild recall recognize record recycle redo refer refuse regret reject release",
    "renew replace reveal review root rub sail scan scream select shake shine sigh sink slip smell snap soak spread",
    "stack stare steer stream strive submit sue survive suspect sustain swear sweat sweep swing tease tip toss",
    "trigger breathe de-stress distress lounge snuggle gush glow buzz vibe jam spruce tweak prep destress cling smash",
    "showcase spotlight nail rock kill pump train transform tie wrap prioritize brighten impress lean unwind recharge",
    "resonate reflect",
)
IRREGULAR = _words(
    "became began begun blew broke broken brought built bought came caught chose chosen did done drank drawn drew",
    "driven drove eaten ate fallen fell felt found fought flew forgot forgotten gave given went gone got gotten grew",
    "grown had has heard held hit hurt kept knew known led left lent let lost made meant met paid put ran said sang",
    "sat saw seen sent set shown slept sold spent spoke spoken stood stuck swam sung taken took taught thought threw",
    "told understood woke won wore worn written wrote knows goes does says saying going doing making taking getting",
    "coming having being",
)
# Gerunds that name a pastime, an occupation or a project, so that they are worth a node.
PASTIMES = _words(
    "baking biking boxing bowling camping canoeing climbing coaching coding cooking counseling counselling crocheting",
    "cycling dancing dating diving drawing fencing fishing fostering fundraising gaming gardening hiking hunting",
    "journaling journalling kayaking kickboxing knitting marketing meditating meditation mentoring networking",
    "painting parenting photography programming reading rowing running sailing sculpting sewing shopping singing",
    "skating skiing sketching snowboarding stretching surfing swimming teaching training travelling traveling",
    "tutoring volunteering walking weightlifting woodworking wrestling writing advertising accounting banking",
    "consulting engineering nursing streaming blogging",
)
KIN = _words(
    "mom mum mother mama dad father papa parents sister sisters brother brothers husband wife spouse son sons",
    "daughter daughters kid kids child children baby grandma grandmother grandpa grandfather granny grandparents",
    "boyfriend girlfriend partner fiance fiancé fiancee fiancée cousin cousins aunt uncle niece nephew boss manager",
    "roommate roommates roomie neighbor neighbour colleague colleagues coworker coworkers friend friends bestie",
    "family dog dogs cat cats puppy pup kitten pet pets pets' therapist doctor dentist teacher coach mentor mentors",
    "team teammates in-laws ex",
)
ONE_PERSON = _words(
    "mom mum mother dad father sister brother husband wife son daughter boyfriend girlfriend partner fiance fiancé",
    "fiancee fiancée cousin aunt uncle niece nephew boss manager roommate neighbor neighbour colleague coworker",
    "friend bestie dog cat puppy kitten pet therapist doctor dentist teacher coach mentor kid child baby grandma",
    "grandmother grandpa ex",
)
# Words that open a sentence with a capital and are no names.
STARTERS = _words(
    "mondays tuesdays wednesdays thursdays fridays saturdays sundays absolutely agreed alright amen anytime",
    "appreciate awesome aww based bet bravo bummer can cheers congratulations congrats cool count dang definitely",
    "dear enjoy exactly excellent fantastic fingers good gotcha great happy hmm honestly hooray hope hopefully huge",
    "incredible indeed interesting jeez just keep kudos let life looks love lovely mhm nah nice nope oof ooh oops",
    "perfect phew please plus right same see sounds sorry speaking super sure sweet take talk thank thanks totally",
    "truly ugh wait way welcome whoa woah woohoo wonderful woot wow yay yeah yep yes yikes yo yup friday monday",
    "saturday sunday thursday tuesday wednesday april august december february january july june march may november",
    "october september christmas lol omg god btw fyi asap tbh imo lmk ok okay gonna gotta kinda mr mrs ms dr",
)
# Names aside, only these and plurals open a sentence with no word like "the" before them.
BARE_NOUNS = _words(
    "coffee tea milk water wine beer juice soda bread cheese butter rice pasta pizza meat beef pork chicken fish",
    "fruit chocolate sugar salt honey soup salad dessert food breakfast lunch dinner brunch snow rain wind sunshine",
    "weather nature air fire earth sun moon gold silver oil gas wood paper plastic glass cotton silk grass money",
    "cash debt art music poetry literature history science math maths physics chemistry biology medicine technology",
    "religion philosophy politics law war crime traffic yoga football soccer tennis basketball baseball golf chess",
    "school management staff society humanity mankind government parliament congress police army public faculty",
    "leadership marketing sales finance legal engineering security customer client user students users men women god",
    "heaven death youth age evidence data code state logic config cache memory content context text email mail",
    "internet storage production authentication auth frontend backend whatever whoever whichever wherever noon",
    "midnight christmas easter ex-wife ex-husband grandson granddaughter stepmother stepfather stepsister",
    "stepbrother auntie grandad granddad nan hubby wifey sis bro dude buddy landlord wildlife livestock furniture",
    "luggage equipment jewelry clothing homework laughter silence sleep sport sports business industry trade culture",
    "english french german spanish chinese japanese",
)
ORGANISATION_WORDS = _words(
    "inc corp corporation ltd llc gmbh plc company university college school academy institute hospital clinic bank",
    "agency foundation association club church center centre museum library department ministry union labs lab studio",
    "group shelter restaurant cafe bar gym store shop theater theatre orchestra committee council",
)
PLACE_WORDS = _words(
    "city town village county state island islands beach park lake river mountain mountains valley street road avenue",
    "square airport bridge canyon forest falls bay coast peninsula national",
)
PLACES = _words(
    "africa america asia australia europe antarctica england scotland wales ireland britain uk usa us france germany",
    "spain portugal italy greece sweden norway denmark finland iceland netherlands holland belgium switzerland",
    "austria poland czechia hungary romania bulgaria croatia serbia ukraine russia turkey israel egypt morocco kenya",
    "nigeria ghana ethiopia tanzania india pakistan bangladesh nepal china japan korea taiwan thailand vietnam",
    "malaysia singapore indonesia philippines canada mexico brazil argentina chile peru colombia cuba jamaica london",
    "paris berlin madrid barcelona lisbon porto rome milan venice florence athens stockholm oslo bergen copenhagen",
    "helsinki reykjavik amsterdam rotterdam brussels zurich geneva vienna prague budapest warsaw krakow bucharest",
    "sofia zagreb belgrade kyiv kiev moscow istanbul ankara jerusalem cairo casablanca nairobi lagos accra",
    "johannesburg mumbai delhi bangalore kolkata chennai karachi lahore dhaka kathmandu beijing shanghai shenzhen",
    "guangzhou chengdu hangzhou nanjing wuhan taipei tokyo osaka kyoto seoul busan bangkok hanoi jakarta manila bali",
    "sydney melbourne brisbane perth auckland wellington toronto montreal vancouver ottawa calgary boston chicago",
    "houston dallas austin denver seattle portland miami atlanta detroit philadelphia phoenix nashville orlando",
    "washington california texas florida oregon nevada hawaii alaska colorado virginia georgia arizona utah michigan",
    "ohio minnesota wisconsin tennessee kentucky louisiana maine vermont manhattan brooklyn queens hollywood dubai",
    "doha riyadh edinburgh glasgow manchester liverpool birmingham bristol leeds dublin belfast munich hamburg",
    "frankfurt cologne lyon marseille nice naples turin valencia seville malaga havana lima bogota santiago quito",
    "caracas hong-kong rio",
)
GIVEN_NAMES = _words(
    "aaron abby abigail adam adrian aiden alan albert alejandro alex alexa alexander alexandra alice alicia alison",
    "allison amanda amber amelia amy ana andrea andrew andy angela angelina anita ann anna anne annie anthony antonio",
    "april aria arthur ashley audrey austin ava barbara becky bella ben benjamin beth betty beverly bill billy bob",
    "bobby brad bradley brandon brenda brian brianna bruce bryan calvin cameron carl carla carlos carmen carol",
    "caroline carolyn carrie catherine cathy charles charlie charlotte chen cheryl chloe chris christian christina",
    "christine christopher cindy claire clara cody colin connor craig crystal cynthia daisy dan daniel danielle",
    "darren dave david dawn dean debbie deborah debra denise dennis derek diana diane diego dominic don donald donna",
    "doris dorothy doug douglas dylan earl ed eddie edward edwin elena eli elijah elizabeth ella ellen emily emma",
    "eric erica erik erika erin ethan eugene eva evan evelyn fatima felix fernando fiona florence frances francis",
    "frank fred gabriel gary george gerald gina gloria grace grant greg gregory hailey hannah harold harry hassan",
    "heather helen henry holly howard hugh hugo ian ibrahim ingrid irene isaac isabel isabella ivan jack jackie",
    "jackson jacob jacqueline jake james jamie jan jane janet janice jared jasmine jason javier jay jean jeff jeffrey",
    "jen jenna jennifer jenny jeremy jerry jesse jessica jill jim jimmy joan joanna joe joel john johnny jon jonathan",
    "jordan jorge jose joseph josh joshua joy joyce juan judith judy julia julian julie justin karen karl kate",
    "katherine kathleen kathy katie keith kelly ken kenneth kevin kim kimberly kristen kyle larry laura lauren",
    "lawrence leah lee leo leon leonard leslie liam lily linda lisa liz logan lori louis louise lucas lucy luis luke",
    "lydia lynn madison marco marcus margaret maria marie marilyn mark martha martin marvin mary mason matt matthew",
    "maya megan mel melanie melissa mia michael michelle miguel mike mohamed mohammed molly monica nancy naomi",
    "natalie natasha nathan neil nicholas nick nicole nina noah nora norman oliver olivia omar oscar pablo pamela",
    "patricia patrick paul paula pedro peggy peter phil philip phillip phyllis priya rachel ralph randy raymond",
    "rebecca renee rhonda ricardo richard rick riley rita rob robert robin rodney roger ron ronald rose rosa ross roy",
    "russell ruth ryan sally sam samantha samuel sandra sara sarah scott sean sebastian sergio seth shannon sharon",
    "shawn sheila sherry shirley simon sofia sophia sophie stacy stanley stella stephanie stephen steve steven stuart",
    "sue susan suzanne sylvia tanya tara taylor ted teresa terry theresa thomas tiffany tim timothy tina todd tom",
    "tommy toni tony tracy travis tyler valerie vanessa veronica victor victoria vincent virginia walter wanda wayne",
    "wendy wes wesley will william yolanda yusuf zach zachary zoe",
)


def _forms(verb: str) -> set[str]:
    stem = verb.removesuffix("e")
    doubled = verb + verb[-1]
    past = verb[:-1] + "ied" if verb.endswith("y") and verb[-2] not in "aeiou" else stem + "ed"
    third = (
        verb[:-1] + "ies"
        if verb.endswith("y") and verb[-2] not in "aeiou"
        else verb + ("es" if verb.endswith(("s", "sh", "ch", "x")) else "s")
    )
    return {verb, past, third, stem + "ing", verb + "ing", doubled + "ed", doubled + "ing"}


VERB_FORMS = frozenset(form for verb in VERBS for form in _forms(verb)) | IRREGULAR
# Nouns that are also verbs; after a determiner they are nouns.
STOP = PRONOUNS | AUXILIARIES | FUNCTION
