"""English words whose forms no rule of endings connects, each line a family."""

from __future__ import annotations

_FAMILIES = """
arise arose arisen | awake awoke awoken | bear bore borne born birth birthplace birthday |
beat beaten | become became | begin began begun | bend bent | bind bound | bite bit bitten |
bleed bled | blow blew blown | break broke broken | breed bred | bring brought | build built |
burn burnt | buy bought | catch caught | choose chose chosen choice | cling clung | come came
| creep crept | deal dealt | die died dying dies dead death | dig dug | dive dove | draw drew
drawn | dream dreamt | drink drank drunk | drive drove driven | eat ate eaten | fall fell
fallen | feed fed | feel felt | fight fought | find found finder | flee fled | fly flew flown
flight | forbid forbade forbidden | forget forgot forgotten | freeze froze frozen | give gave
given gift | go went gone | grow grew grown growth | hang hung | hear heard | hide hid hidden
| hold held | keep kept | kneel knelt | know knew known | lay laid | lead led | learn learnt |
leave left | lend lent loan | lose lost loss | make made | marry married marriage | mean meant
| meet met | pay paid | ride rode ridden | ring rang rung | rise rose risen | run ran | say
said | see saw seen sight | seek sought | sell sold sale | send sent | shake shook shaken |
shine shone | shoot shot | show shown | sing sang sung song | sink sank sunk sunken | sit sat
| sleep slept | slide slid | speak spoke spoken speech | spend spent | spin spun | spring
sprang sprung | stand stood | steal stole stolen | stick stuck | strike struck stricken |
swear swore sworn | sweep swept | swim swam swum | take took taken | teach taught | tear tore
torn | tell told | think thought | throw threw thrown | wake woke woken | wear wore worn |
weave wove woven | weep wept | win won | write wrote written | child children | foot feet |
goose geese | life lives | man men | mouse mice | ox oxen | person people | tooth teeth | wife
wives | woman women | wolf wolves | half halves | knife knives | thief thieves | leaf leaves |
long length | wide width | high height | deep depth | strong strength | hot heat | warm warmth
| poor poverty | wise wisdom | true truth | able ability | destroy destruction | receive
reception receipt | decide decision | explode explosion | invade invasion | discover discovery
| succeed success | fail failure | arrive arrival | depart departure | survive survival
survivor | bury burial | refuse refusal | propose proposal | approve approval
"""

FORMS: dict[str, str] = {
    form: family.split()[0] for family in _FAMILIES.split("|") for form in family.split()[1:]
}
"""The first word of the family for each other form."""
