"""The plots: a line is a beat of the story, [a|b] a choice, {x} a slot, {bank:x} a clause that SmolLM2 wrote.

Slots: N the hero, he him his; F the friend (at first "a mouse", then "the mouse", or a name), fhe fhim fhis; K, FK their
kinds; T the thing ("ball"), aT and theT with its colour; P a place, home, food, flower, fear, skill. A name in capitals
is one of MACROS. story.py puts them together.
"""

MACROS = {
    "OPEN": [
        "Once upon a time, there was {aK}. {N} lived {inhome}.",
        "Once upon a time, there was {aK}. {N} lived {inhome}. {LIFE}",
        "Once upon a time, {aK} lived {inhome}. {LIFE}",
        "There once was {aK}. {LIFE}",
        "{inhome}, there lived {aK}. {LIFE}",
        "Once there was {aK} who lived {inhome}.",
        "Once upon a time, there was {aK} who had {bank:had}. {N} lived {inhome}.",
    ],
    "LIFE": [
        "Every day, {N} liked to {bank:likes}.",
        "{N} liked to {bank:likes}.",
        "{N} had {bank:had}.",
        "Everyone liked {N} because {he} {bank:liked_because}.",
        "{N} was very good at {bank:good_at}.",
        "{His} favorite food was {bank:food}.",
        "{He} loved to {bank:likes}.",
    ],
    "DAY": [
        "One [day|morning|afternoon], ", "One {weather} [day|morning], ", "One day, ", "Then one day, ",
        "It was a {weather} day, and {bank:weather}. ",
    ],
    "MEET": [
        "[Then|Just then|Soon|After a while], {F} came by.",
        "On the way, {he} met {F}.",
        "Then {he} saw {F}.",
        "[Just then|Then], {F} came [along|by|down the road].",
    ],
    "ASK": ['"What is wrong?" asked {F}.', '"Why are you so sad?" asked {F}.', '"Can I help you?" asked {F}.',
            '"Hello," said {F}. "Why do you look so sad?"', '"Are you all right?" asked {F}.'],
    "HELP": ['"Do not worry," said {F}. "I will help you."', '"I can help you," said {F}.', '"Do not be sad," said {F}. "I have an idea."',
             '"Let us do it together," said {F}.', '"Two are better than one," said {F}. "I will come with you."'],
    "SAD": ["{N} was very sad.", "{N} was so sad that {he} {bank:sad}.", "{N} sat down and began to cry.", "A tear ran down {his} face."],
    "GLAD": ["{N} was so happy that {he} {bank:happy}.", "{N} was very happy.", "{N} smiled [a big smile|from ear to ear].",
             "How happy {N} was!"],
    "SCARED": ["{N} was so scared that {he} {bank:scared}.", "{N} was very scared.", "{His} heart beat fast."],
    "THANK": ['"Thank you, {Fcall}!" said {N}.', '"Thank you so much!" said {N}. "You are a good friend."', "To say thank you, {N} gave {F} {bank:thanks}.",
              '"You are so kind," said {N}. "Thank you!"'],
    "END": [
        "From that day on, {N} and {F} {bank:ever}.",
        "{N} and {F} played together. They {bank:play}.",
        "From then on, {N} and {F} were [best|good] friends.",
        "That night, {N} dreamed of {bank:dreamed}.",
        "And they were happy ever after.",
        "{N} went home with a happy heart. The {bank:night_all}.",
        "And so {N} and {F} became [best|very good] friends.",
        "They laughed and went home together.",
        "[It was the best day of all.|What a day it was!]",
    ],
    "WALK": ["{N} went to {P}. {There}", "{N} walked to {P}. On the way {he} saw {bank:walk}.", "{N} went for a walk {inP}.",
             "{N} was playing {inP}.", "{N} was on {his} way to {P}."],
    "There": ["There were {bank:there}.", "{P} was [quiet|cool|warm|beautiful] and smelled of {bank:smell}.", ""],
    "LOOKED": ["{theT} was {color} and {bank:looked}.", "It was {color} and {bank:looked}.", "[What a nice {T} it was!|It was the best {T} in the world.]"],
}

PLOTS = {
    "lost": dict(
        asks=["who gets lost", "who is lost", "who cannot find the way home", "who is lost {inP}"], title=["{K} Who Was Lost", "{name} Finds the Way Home"],
        text="""{OPEN}
{DAY}{WALK}
[{N} saw {bank:walk} and ran after it.|{N} walked on and on.|{N} looked at everything and did not see how late it was.] [Soon|After a while], {he} did not know the way home.
{SCARED} [It was getting dark.|The sun went down.|] [{N} called for help, but nobody came.|"Where is my home?" {he} cried.|]
{MEET} {ASK}
"I am lost," said {N}. "I want to go home." {HELP}
[{F} showed {N} the way.|They walked and walked.|{F} went first, and {N} went after {fhim}.] [They went over the hill and past the old tree.|They went past the river and over a bridge.|The moon showed them the way.|They sang a song so that they were not afraid.]
[At last|In the end|Soon], {N} saw {his} home. {GLAD} {THANK}
{END}"""),
    "lost_thing": dict(
        asks=["who lost {aT}", "who loses {aT}", "and a lost {T}", "who cannot find {his} {T}"], title=["The Lost {T}", "Where Is the {T}?"],
        text="""{OPEN} {N} had {aT}. {LOOKED}
{DAY}{N} could not find {his} {T}. [It was gone!|It was not there.|{He} had lost it.]
[{He} looked under the bed. It was not there. {He} looked behind the door. It was not there.|{He} looked in the house and in the garden, but the {T} was not there.|{He} looked here and {he} looked there, but there was no {T}.] {SAD}
{MEET} {ASK} "I lost my {T}," said {N}. {HELP}
[They looked {inP}.|Together they went to {P}.|They looked under every stone {inP}.] [They saw {bank:walk}, but no {T}.|{There}|They looked for a long time.]
[Then|At last], {F} [called|cried], "[Look|Look there|I see it|Here it is]!" The {T} was [under a bush|in a tree|behind a big stone|in the tall grass|on top of a wall].
{GLAD} {THANK}
{END}"""),
    "found": dict(
        asks=["who finds {aT}", "who found {aT}", "and {aT}", "who gives {aT} back"], title=["The {color} {T}", "{name} and the {T}"],
        text="""{OPEN}
{DAY}{WALK} There, {on_ground}, {N} found {aT}. {LOOKED}
"[Whose {T} is this?|Who lost this {T}?|What a nice {T}!]" said {N}. [{He} wanted to keep it.|{He} liked it very much.|{He} picked it up.]
{MEET} {F} was [very sad|crying|looking for something]. "I have lost my {T}," said {F}.
{N} [thought for a moment|looked at the {T}|felt sorry for {F}]. [{He} wanted to keep the {T}, but {he} knew that it was not right.|"I must give it back," {he} thought.|]
"Here is your {T}," said {N}. "I found it {inP}."
[{F} was so happy that {fhe} {bank:fhappy}.|{F} was very happy.|{F} smiled.] "Thank you!" said {F}. "[You are very kind|You are so good|Let us play with it together|Now we can share it]."
{END}"""),
    "share": dict(
        asks=["who does not want to share", "who learns to share", "and sharing", "who shares {aFood}"], title=["{name} Learns to Share", "The Big {Food}"],
        text="""{OPEN}
{DAY}{N} had {aFood}. [It was big and sweet.|It smelled so good.|It was the best {food} in the world.]
{MEET} "[I am so hungry|I have had nothing to eat today|I am hungry]," said {F}. "May I have some of your {food}?"
"No," said {N}. "It is [all mine|mine|only for me]!" {F} [was sad and went away|went away with a sad face|looked down and walked away].
{N} [sat down to eat|wanted to eat|took a bite], but [{he} was not happy|it did not taste good|{he} felt bad]. {He} thought of {F}. ["I was not kind," {he} thought.|"It is not nice to eat alone," {he} thought.|]
{So} {N} ran after {F}. "Wait!" {he} called. "I am sorry. [We can share|Let us eat it together|Here is half of it for you]."
They sat down [under a tree|in the grass|in the sun] and ate the {food} together. [It tasted so good!|It was the best meal of all.|Now it tasted very good.]
{N} learned that {bank:learned_share}. {END}"""),
    "fear": dict(
        asks=["who is afraid of {fear}", "who is scared of {fear}", "who learns to be brave", "who is not brave", "and being brave"], title=["The Brave {K}", "{name} Is Not Afraid"],
        text="""{OPEN} But {N} was afraid of {fear}.
{DAY}[all {his} friends went out to play, but {N} stayed at home.|{N} stayed at home alone.|{N} hid under {his} blanket.] {SAD}
[Then {F} came to see {him}.|{MEET}] "[Come out and play!|Come with me!|Why do you hide?]" said {F}. "I cannot," said {N}. "I am afraid of {fear}."
"[I was afraid too|Everyone is afraid of something|I was once afraid of {fear} too]," said {F}. "[Take my hand|Stay with me|We will go together|Let us try it, step by step]."
{SCARED} But {he} took [one small step|a deep breath|a small step], and then [one more|another one].
[Nothing bad happened.|It was not so bad at all.|"It is not so bad!" said {N}.] [Soon {he} was laughing.|{He} began to laugh.|{F} cheered.] "[I did it|Look at me|I am not afraid anymore]!" [cried|called|said] {N}.
{N} learned that {bank:learned_brave}. {END}"""),
    "small": dict(
        asks=["who is too small", "who is very small", "who wants to be big", "who feels small"], title=["The Smallest {K}", "Small but Good"],
        text="""{OPEN} {N} was very small. "[You are too small to play with us|You are too little|You are too small to help]," said the others. {SAD}
{DAY}there was a big cry {inP}. {F} was in trouble. {Fhis} {T} had fallen into a [hole|small hole in the ground|hole in a tree]. [Nobody could reach it.|Everyone tried, but they were all too big.|The others were too big to get in.]
"[Let me try|I can do it|I can help]," said {N}. [The others laughed.|Nobody thought that {he} could do it.|Everyone looked at {him}.]
{N} went into the hole. It was [dark and cold|very dark|deep and dark], but {he} was brave. [After a while|Soon|At last], {he} came back with the {T}.
"Hooray!" shouted everyone. [{F} was so happy that {fhe} {bank:fhappy}.|"Thank you, little friend!" said {F}.|"You are small, but you have a big heart," said {F}.]
[Now everyone wanted to play with {N}.|From that day on, nobody laughed at {N}.|"I am glad that I am small," said {N}.] {END}"""),
    "storm": dict(
        asks=["and a storm", "in the rain", "and the rain", "who is caught in the rain"], title=["The Big Storm", "A Rainy Day"],
        text="""{OPEN}
{DAY}big dark clouds came. [Soon it began to rain.|The wind blew and the rain fell.|Then there was thunder.] {N} was [warm and dry at home|at home|in {his} cozy home].
[Knock, knock!|Then there was a knock at the door.|Someone knocked at the door.] It was {F}. {Fhe} was [wet and cold|very wet|cold and hungry]. "[May I come in?|Please let me in!|Can I stay here?]" asked {F}.
"[Come in, come in|Of course|Yes, please come in]!" said {N}. {He} gave {F} [a warm blanket|some hot soup|a cup of hot tea|a dry coat] and {aFood}.
[Then there was another knock. More and more animals came. Soon the house was full.|They sat by the fire and talked about {bank:talked}.|Outside the wind blew, but inside it was warm.] [They told stories and sang songs.|They played games until it was dark.|]
[In the morning|At last|Then] the rain stopped. The sun came out, and there was a rainbow [over {P}|in the sky]. [They all ran outside.|"Look!" said {N}.|]
{F} [smiled|was happy]. "Thank you for your help," {fhe} said. {END}"""),
    "build": dict(
        asks=["who builds a {Build}", "who wants to build a {Build}", "who makes a {Build}", "and a {Build}"], title=["The {Build}", "{name} Builds a {Build}"],
        text="""{OPEN} More than anything, {N} wanted [a {build}|to build a {build}].
{DAY}{N} [began to work|got some wood and a hammer|found some wood {inP}]. {He} worked all day. But [the {build} fell down|the {build} was not good|the first {build} broke]. {SAD}
{MEET} "What are you doing?" asked {F}. "I want to build a {build}," said {N}, "but I cannot do it."
{HELP} [{F} brought {bank:thanks}.|{F} had good ideas.|{F} got some rope and some paint.|{F} held the wood, and {N} used the hammer.]
[They worked all morning.|They worked and worked.|They tried again and again.] [At last|In the evening|The next day], the {build} was ready. It was {color} and {strong}.
"[We did it|Look what we made|It is beautiful]!" said {N}. [With the {build}, they went to {P}.|Everyone came to see it.|They painted their names on it.]
{N} learned that {bank:learned_try}. {END}"""),
    "birthday": dict(
        asks=["and a birthday", "who has a birthday", "and a party", "and a birthday party"], title=["The Birthday", "A Party for {name}"],
        text="""{OPEN}
[It was {N}'s birthday.|One day, it was {N}'s birthday.] {N} woke up and {bank:morning}. But nobody said "Happy birthday!" {N} [went to {P}|looked for {his} friends|walked to {P}], but nobody was there.
"[Everyone has forgotten my birthday|Nobody thinks of me]," {he} said. {SAD}
{MEET} "Come with me," said {F}. "I want to show you something."
[They walked to {P}.|They went down the road.|{F} took {N} to an old tree.] It was [dark and quiet|very quiet]. Then, all at once, everyone jumped up. "Surprise!" they shouted. "Happy birthday, {Ncall}!"
There was a big cake with candles. [{F} gave {N} {aT}.|{N} got {aT}.|There was {aT} for {N} too.] {GLAD}
At the party, they {bank:party}. {End2}"""),
    "garden": dict(
        asks=["who plants a seed", "who has a garden", "and a garden", "and a flower", "and a seed"], title=["The Little Seed", "{name}'s Garden"],
        text="""{OPEN}
{DAY}{N} found a tiny seed. "[What will it be?|What is in it?|I will plant it!]" {he} [said|thought]. {He} put it into the ground [in the garden|behind the house|near the old wall].
Every day, {N} gave it water. But nothing happened. [One day went by, and then another.|{N} waited and waited.] {SAD}
{MEET} "[Why do you look at the ground|What are you waiting for]?" asked {F}. "My seed does not grow," said {N}.
"[You must wait|Give it time|Good things take time]," said {F}. "[Sing to it|Let us water it together|The sun will help it]." [So they sang to the seed.|So they waited together.|They sat in the sun and talked about {bank:talked}.]
[Then one morning|At last|One day], there was a little green leaf. It grew and grew. [Soon it was as tall as {N}.|Soon it was a beautiful {flower}.] 
"[Look|Come and see]!" called {N}. "[It is a {flower}!|I have a {flower}!]" {GLAD}
{N} learned that {bank:learned_try}. {END}"""),
    "race": dict(
        asks=["and a race", "who wants to win a race", "who runs a race", "who wants to be the fastest"], title=["The Big Race", "Who Will Win?"],
        text="""{OPEN}
{DAY}there was a big race {inP}. "[I want to win|I will be the first|I am very fast]," said {N}. {F} was in the race too. [Everyone came to look.|The winner would get {aT}.|]
"[One, two, three, go|Ready, set, go]!" They all ran. [{N} was very fast.|{N} was first.|{N} ran as fast as the wind.]
Then {N} heard a cry. {F} [had fallen down|was lying on the ground|had hurt {fhis} foot]. {N} wanted to win. But {he} [stopped|could not go on|thought of {F}].
{N} ran back. "[Let me help you|Take my hand|Can you stand up]," said {N}. [{He} helped {F} up.|{He} put {his} arm around {F}.] Together they walked, step by step.
They came in last. But everyone [clapped|cheered]. "[You are the real winner|That was very kind|You did not win the race, but you won a friend]," they said.
[{N} was proud and happy.|{GLAD}|] {End2}"""),
    "sick": dict(
        asks=["who helps a sick friend", "and a sick friend", "who is sick", "who is kind", "and being kind"], title=["The Sick Friend", "Soup for a Friend"],
        text="""{OPEN} {F} was {his} best friend.
{DAY}{F} did not come out to play. {N} went to see {fhim}. {F} was in bed. "I am sick," said {F}. "[My head hurts|I am so hot|I cannot get up]."
{N} wanted to help. {He} went home and [made some hot soup|made a cup of tea|got {aFood}]. Then {he} picked some flowers [{inP}|in the garden]. [On the way {he} saw {bank:walk}, but {he} did not stop.|]
"[This will make you better|Here, this is for you|I have something for you]," said {N}. {F} [ate it all up|smiled|sat up in bed]. {N} sat by the bed and told {fhim} a story about {bank:dreamed}.
[The next day|Two days later|Soon], {F} was well again. {Fhe} {bank:fmorning}. "[You are the best friend in the world|You made me well|Thank you for your help]," said {F}.
{End2}"""),
    "sleep": dict(
        asks=["who cannot sleep", "who does not want to go to bed", "and the moon", "and the stars", "for bedtime", "and the night"], title=["Good Night, {name}", "{name} Cannot Sleep"],
        text="""{OPEN}
One night, {N} could not sleep. The {bank:night_all}. {N} turned to the left. {N} turned to the right. But {he} was not tired.
[{He} got up and looked out of the window.|{He} went outside.] There was {F}. "Why are you not asleep?" asked {F}. "I cannot sleep," said {N}.
"[Count the stars|Let us look at the stars|Think of something nice]," said {F}. [So {N} counted: one, two, three, four, five.|They looked up. The sky was full of stars.|{N} thought of {bank:dreamed}.] ["I can see a big one!" said {N}.|A star fell from the sky, and {N} made a wish.|]
[Then {F} sang a soft song.|{F} told a story about {bank:dreamed}.|The wind sang a soft song.] {N}'s eyes got [heavy|smaller and smaller].
["Good night, {Fcall}," {he} said.|"Good night," said {F}.] Soon {N} was fast asleep. {He} dreamed of {bank:dreamed}.
[The moon smiled down on them.|All was quiet.|In the morning, the sun woke {him}.]"""),
    "lonely": dict(
        asks=["who is lonely", "who has no friends", "who wants a friend", "and friendship", "and a new friend", "who finds a friend"], title=["A Friend for {name}", "The Lonely {K}"],
        text="""{OPEN} But {N} was lonely. {He} had no friends to play with.
{DAY}{WALK} {He} asked [a bird|an ant|a butterfly|a bee], "Will you be my friend?" But it [had no time|flew away|was too busy]. {SAD}
{Then} {N} heard a small voice. It was {F}. {Fhe} was [alone too|sitting under a tree|looking at the ground]. "[Hello|Hi|Good day]," said {N}. "I am {Nintro}. [Do you want to play|What are you doing|Who are you]?"
"[I have nobody to play with|I am new here|I am all alone]," said {F}. "[Me too|So am I]!" said {N}. "[Then we can play together|Let us be friends|Then we can be friends]."
They [went to {P}|ran into the sun|sat down together]. They {bank:play}. [They shared {aFood}.|They talked about {bank:talked}.|They laughed and laughed.]
When the sun went down, {N} was [not lonely anymore|very happy]. "[See you tomorrow!|Will you come again tomorrow?]" {he} said. {N} learned that {bank:learned_friend}. 
{End2}"""),
    "magic": dict(
        asks=["who finds a magic {Mthing}", "and a magic {Mthing}", "who has a magic {Mthing}", "and magic", "who makes a wish", "and three wishes"], title=["The Magic {Mthing}", "Three Wishes"],
        text="""{OPEN}
{DAY}{WALK} There {he} found an old {mthing}. [It began to shine.|It was golden and very bright.|It was warm in {his} hand.] "I am a magic {mthing}," it said. "You have three wishes."
{N} could not believe it. [{He} thought for a long time.|] "I wish for {bank:wanted_thing}," {he} said. [Puff! There it was.|And there it was!] "And I wish for {aFood}!" [It was the best {food} in the world.|There it was, big and sweet.]
{MEET} {Fhe} was [crying|very sad]. "[My home is gone|I have nothing to eat|I am all alone]," said {F}. {N} had only one wish left. [{He} wanted to be rich.|{He} wanted to keep it.|What should {he} do?]
"I wish that {F} is happy again," said {N}. The {mthing} shone [one last time|very bright]. And {F} [smiled|laughed|had {bank:fwanted_thing}]!
"[That was the best wish of all|You used your last wish for me]," said {F}. The magic was gone, but {N} had a friend. 
{End2}"""),
    "rescue": dict(
        asks=["who helps a friend", "who saves a friend", "who rescues someone", "and helping others", "and a rescue", "who is a hero"], title=["{name} to the Rescue", "The {K} Who Helped"],
        text="""{OPEN}
{DAY}{WALK} Then {he} heard a cry. "Help! Help!" It was {F}. {Fhe} [was stuck in a tree|had fallen into a deep hole|was stuck in the mud|could not get out of the water|was stuck behind a big stone].
["Do not be afraid!" called {N}. "I will help you."|"Wait! I will help you," said {N}.] {N} pulled and pulled, but it was [too hard|no good]. [{SCARED}|What could {he} do?]
Then {N} had an idea. {He} [ran home and got a long rope|found a long stick|called all {his} friends|got {aT}]. "[Hold on|Hold it tight|Do not let go]!" said {N}. "One, two, three!"
[Pop!|Puff!|With a big pull,] {F} was free. {Fhe} was so happy that {fhe} {bank:fhappy}. "[You saved me|You are my hero|You are so brave]!" said {F}.
[To say thank you, {F} gave {N} {bank:thanks}.|{N} was very proud.|"That is what friends are for," said {N}.] {END}"""),
    "journey": dict(
        asks=["who wants to see the {Far}", "who goes on a trip", "who goes on an adventure", "who travels to the {Far}", "and the {Far}", "and an adventure"], title=["The Trip to the {Far}", "{name} Goes Away"],
        text="""{OPEN} More than anything, {N} wanted to see the {far}.
{DAY}{N} packed {aFood} and {aT} and went off. {He} walked to {P}. On the way {he} saw {bank:walk}.
{MEET} "Where are you going?" asked {F}. "I am going to the {far}," said {N}. "[May I come too|Can I come with you]?" "[Yes, come|Of course]!" said {N}.
So they went on together. [They went over a hill and through a dark forest.|They crossed a river on a little boat.|They rode on a train.|They slept under the stars.] [When {N} was tired, {F} sang a song.|When it rained, they sat under a big leaf.|They shared the {food}.] [They talked about {bank:talked}.|]
[At last|In the end|After three days], they saw the {far}. "[How big it is|How beautiful it is|Look at it]!" said {N}. {GLAD} They {bank:play}.
[But after a while, {N} missed {his} home.|In the evening, they went home.] "[It was a long way, but we did it|What a trip]!" said {F}. {End2}"""),
    "bake": dict(
        asks=["who bakes a cake", "and a cake", "who cooks soup", "who likes to cook", "and cooking"], title=["The Salty Cake", "{name} Bakes a Cake"],
        text="""{OPEN}
{DAY}{N} wanted to bake a cake[ for {F}|]. {He} took [flour, eggs and milk|eggs, milk and sugar]. {He} mixed it all in a big bowl. [Some of it fell on the floor.|There was flour on {his} nose.|{He} sang a song.]
Then {he} put the cake in the oven. It smelled very good. {F} came [by|to eat]. "[What smells so good|Is that a cake]?" asked {F}.
They sat down, and each took a big bite. "Oh no!" said {N}. "[It is full of salt|I took salt and not sugar|It tastes bad]!" {SAD}
But {F} [laughed|began to laugh]. "[Everyone makes mistakes|It does not matter|That happens to me too]," {fhe} said. "[Let us try again|We will make a new one|I will help you]."
So they baked a new cake. This time they took sugar. [It was sweet and soft.|It was the best cake in the world.] [They shared it with everyone {inP}.|They ate it all up.]
{N} learned that {bank:learned_try}. {End2}"""),
    "quarrel": dict(
        asks=["who has a fight with a friend", "who says sorry", "and saying sorry", "who is angry", "and two friends"], title=["The Broken {T}", "I Am Sorry"],
        text="""{OPEN} {F} was {his} best friend. They liked to play with {aT}.
{DAY}"It is my turn," said {N}. "No, it is my turn!" said {F}. {N} pulled, and {F} pulled. Then [crack|snap]! The {T} was broken.
"[It is your fault|Look what you did]!" said {N}. {F} went home. {N} went home too. [{N} was angry.|{N} sat alone in {his} room.] 
But [soon|after a while] {he} was not angry anymore. {He} was sad. [It is no fun to play alone.|{He} missed {F}.] {So} {he} went to {F}. {Fhe} was [sad too|sitting by the door].
"I am sorry," said {N}. "I am sorry too," said {F}. [They hugged.|They smiled.] "[Can we fix the {T}|Let us fix it together]," said {N}.
They worked [all day|together], and then the {T} was [as good as new|even better]. [Now they took turns.|They {bank:play}.]
{N} learned that {bank:learned_friend}. {End2}"""),
    "snow": dict(
        asks=["in the snow", "and the snow", "who sees snow for the first time", "in winter", "and a snowman"], title=["The First Snow", "{name} in the Snow"],
        text="""{OPEN}
One [cold|winter] morning, {N} woke up and looked outside. Everything was white. "[Snow|It is snowing|Look, snow]!" {he} cried. {N} put on {his} [hat and scarf|warm coat] and ran outside.
[The snow was soft and cold.|The snow fell on {his} nose.] {MEET} "[Let us make a snowman|Let us play in the snow]!" said {F}.
They rolled a big ball, and a small ball, and a very small ball. [They gave it a carrot for a nose and two stones for eyes.|It got a carrot for a nose and an old hat.] "[He looks funny|What a nice snowman|He is as big as we are]!" said {N}.
Then they [threw snowballs|went down the hill on a sled]. They {bank:play}. {GLAD} [Soon their noses were red and their feet were cold.|Soon it was dark.]
They went inside and had [hot soup|hot milk|{aFood}]. They sat by the fire and talked about {bank:talked}. [Outside, the snowman smiled.|Outside, the snow fell and fell.]"""),
    "noise": dict(
        asks=["who hears a strange noise", "and a strange noise", "and a ghost", "and the dark night", "and a secret"], title=["The Strange Noise", "What Was That?"],
        text="""{OPEN}
One night, {N} heard a noise. "[Bump, bump|Tap, tap|Crack, crack]!" it went. "What is that?" said {N}. {SCARED}
The noise came from [the kitchen|the attic|the garden|behind the door|under the bed]. {N} took [a lamp|a candle|{aT}] and went to look. [Step by step, {he} went.|{He} was very quiet.] The {bank:night_all}.
"[Who is there|Is somebody there]?" asked {N}. [Nobody said a word.|"Bump, bump!" it went again.] {N} opened the door. There was {F}!
"[Please do not be angry|I am sorry|Do not be afraid]," said {F}. "[I was hungry and looked for something to eat|I was cold and wanted to come in|I fell over a chair]."
{N} began to laugh. "[I was so afraid of you|You are not a monster at all|And I thought it was a monster]!" {he} said. {He} gave {F} {aFood}, and they sat down together.
They talked about {bank:talked}. {END}"""),
    "skill": dict(
        asks=["who cannot {skill}", "who wants to {skill}", "who learns to {skill}", "who tries again"], title=["{name} Learns to {Skill}", "Try Again, {name}"],
        text="""{OPEN} But {N} could not {skill}. {He} tried and tried, but {he} could not do it. [The others laughed.|"I will never learn it," {he} said.|] {SAD}
{MEET} {ASK} "I want to {skill}, but I cannot do it," said {N}.
"[I can show you|It was hard for me too|You must not give up]," said {F}. "[Look at me|Do it like this|Try it again, slowly]." 
{N} tried again. It was [not good|a little better]. They went to {P} every day. [One day went by, and then another.|Every day {he} got a little better.] [{F} told {him} not to give up.|They laughed when it went wrong.]
[Then one day|At last], {N} could {skill}! "[I can do it|Look, look|I did it]!" {he} cried. {GLAD}
[Everyone came to look and clapped.|{F} was very proud of {him}.|] {N} learned that {bank:learned_try}. {End2}"""),
    "treasure": dict(
        asks=["and a treasure", "who finds a treasure map", "who looks for a treasure", "and a map", "who finds a map"], title=["The Treasure Map", "The Old Box"],
        text="""{OPEN}
{DAY}{N} found an old map. There was a red cross on it. "A treasure!" {he} cried. {He} ran to {F} and showed {fhim} the map. "[Let us find it|We must go there|I want to come with you]!" said {F}.
They walked to {P}. {There} [They counted ten steps to the left.|They looked for a tall tree.|They went past a big stone.] "[Here it must be|This is the place]," said {N}.
They began to dig. They dug and dug. [{F} was tired, but {N} did not stop.|The sun was hot, and they got very tired.] Then there was a [sound|knock]. It was an old box!
{N} opened it. In the box there was [no gold|not one coin]. There was {aT} and {aFood}. {LOOKED} [{N} was sad at first.|They looked at each other.]
Then {F} laughed. "[The best treasure is a friend|We had so much fun|This is a very good treasure]," {fhe} said. So they sat down and ate. They {bank:play}.
{End2}"""),
    "scary": dict(
        asks=["and a {Scary}", "who meets a {Scary}", "who is afraid of a {Scary}", "and a friendly {Scary}"], title=["The Friendly {Scary}", "{name} and the {Scary}"], friend="scary",
        text="""{OPEN} Everyone was afraid of the {FK} who lived [in the dark cave|behind the hill|{inP}]. "[It is big and bad|Do not go there]!" they said.
{DAY}{N} was {inP}. [{His} {T} rolled away, and {he} ran after it.|{He} went on and on.] All at once, {he} stood before {F}. {SCARED}
But {F} did not [roar|do anything]. {Fhe} [had tears in {fhis} eyes|was crying|looked very sad]. "Why are you crying?" asked {N}. "[Everyone runs away from me|Nobody wants to play with me|I am so lonely]," said {F}.
{N} was not afraid anymore. "[I will be your friend|I will play with you|You are not bad at all]," {he} said. {F} was so happy that {fhe} {bank:fhappy}.
They {bank:play}. Then {N} took {F} to the others. "[Look, this is my friend|You do not have to be afraid]," {he} said. [At first they hid, but then they came out.|One by one, they came out and said hello.]
{N} learned that {bank:learned_friend}. {End2}"""),
    "truth": dict(
        asks=["who breaks {aT}", "who tells a lie", "who tells the truth", "and telling the truth"], title=["The Broken {T}", "{name} Tells the Truth"],
        text="""{OPEN}
{DAY}{N} was playing [in the house|with a ball|in the kitchen]. {F} had {aT} there. Crash! The {T} fell down and broke. {SCARED} {He} hid it [under the bed|behind a chair|in a box].
Soon {F} came [home|in]. "Where is my {T}?" asked {F}. "[I do not know|I have not seen it]," said {N}. But it was not true. {N} felt bad. [{He} could not eat.|{He} did not want to play.|That night {he} could not sleep.]
[The next day|Then|In the morning], {N} went to {F}. "I have to tell you something," {he} said. "I broke your {T}. I am very sorry."
{F} [was quiet for a moment|looked at {him}]. Then {fhe} [smiled|hugged {him}]. "[Thank you for telling me the truth|That was brave of you]," said {F}. "[We can fix it|A {T} is only a {T}, but you are my friend]."
They fixed it together. {GLAD} {N} learned that {bank:learned_truth}. {End2}"""),
    "star": dict(
        asks=["and a star", "who wants to fly", "who wants to fly to the moon", "and the sky", "who looks at the stars"], title=["The Little Star", "{name} and the Star"],
        text="""{OPEN} Every night, {N} looked up at the sky. "[I want to fly to the stars|How I wish I could fly]," {he} said.
One night, a little star fell down. It fell into {P}. {N} ran there. The star was small and [warm|bright]. "[I want to go home|I fell from the sky]," said the star. "Can you help me?"
{MEET} "[We can take it to the top of the hill|I know a high tree|We can make a big kite]," said {F}. So they carried the star [up and up|all the way up]. [It was a long way.|They were tired, but they did not stop.] They talked about {bank:talked}.
[At the top|Up there], {N} threw the star as high as {he} could. It went up and up, until it was in the sky again. "Thank you!" it called.
{GLAD} [Now the star shines for them every night.|And every night, the little star says hello to {N}.|When {N} looks up, the star winks.]"""),
    "word": dict(
        asks=["about {W}"], title=["What Is {W}?", "{name} and {W}", "About {W}"],
        text="""{OPEN}
{DAY}{N} heard [someone|an old man|the others|a bird] talk about {W}. "[What is this about {W}|What is it about {W}|What do they know about {W}]?" thought {N}.
{N} asked [a cow|a hen|a sheep]. "[I only know about grass|I have no time for {W}|Do not ask me about {W}]," was the answer. {N} asked [a goat|a pig|a crow]. "[I have heard of {W}, but I do not know what it means|Ask somebody else]," was the answer. {SAD}
{MEET} {Fhe} was [old and wise|very clever|reading a big book]. "[Tell me about {W}|Do you know about {W}|Can you tell me about {W}], please," said {N}.
{F} thought for a long time. "[Some say one thing, and some say another|You cannot learn it from a book|There are many stories about {W}]," said {fhe}. "[You must find out for yourself|Come, let us find out together|It is different for everyone]."
So they went to {P} and looked. [They saw {bank:walk}.|{There}|They asked everyone they met.] They talked about {W} until [the sun went down|the stars came out|it was dark].
"[Now I know a little about {W}|Now I understand|I did not know that it was so big]," said {N}. "[And I have found a friend|It was good to ask|Tomorrow I will ask again]." {End2}"""),
}

# Where nothing is asked for but the heroes, any plot but these will do.
NEEDS_A_WORD = {"scary", "word"}

SHORT = [
    "{SOPEN} {DAY}{he} met {F}. They {bank:play}. From that day on, they {bank:ever}.",
    "{SOPEN} {DAY}{N} found {aT} {inP}. {He} gave it to {F}, who had lost it. Then they played together and were happy.",
    "{SOPEN} {N} was sad because {he} was alone. Then {F} came by and said hello. Now {N} has a friend.",
    "{SOPEN} {DAY}{N} lost {his} {T}. {F} helped {him} to look for it. They found it under a tree, and {N} was happy.",
    "{SOPEN} {N} had {aFood}. {F} was hungry, so they shared it. It tasted very good.",
    "{SOPEN} {N} was afraid of {fear}. {F} took {his} hand, and they tried it together. Now {N} is very brave.",
    "{SOPEN} {DAY}{N} walked to {P}. On the way {he} saw {bank:walk}. {He} went home and told {F} all about it.",
    "{SOPEN} One night, {he} could not sleep. {F} sang a soft song. Soon {N} was asleep and dreamed of {bank:dreamed}.",
    "{SOPEN} {N} could not {skill}. But {he} tried again and again. One day {he} could do it, and {F} clapped.",
    "{SOPEN} {DAY}it began to rain. {F} was wet and cold. {N} let {fhim} in, and they drank hot milk.",
]
MACROS["SOPEN"] = ["Once upon a time, there was {aK}.", "There once was {aK}.", "Once upon a time, there was {aK} who liked to {bank:likes}."]
MACROS["End2"] = ["{END}", "{END}", ""]
MACROS["So"] = ["So", "Then", "At last,"]
MACROS["Then"] = ["Then", "All at once,", "Just then,"]

# What happens next: an episode with the same two.
NEXT = [
    "The next day, {N} {bank:morning}. Then {he} went to see {F}. \"What shall we do today?\" asked {N}. They went to {P}. There they found {aT}. {LOOKED} They {bank:play}. In the evening they were tired and happy.",
    "The next morning, there was a knock at the door. It was {F}! \"I have something for you,\" said {F}. It was {aT}. {GLAD} They went to {P} and {bank:play}.",
    "After that, {N} and {F} wanted to see the {far}. They packed {aFood} and went off. On the way they saw {bank:walk}. It was a long way, but they were together. When they came home, they had much to tell.",
    "The next day, it rained. {N} and {F} stayed inside. They baked a cake and talked about {bank:talked}. Then the sun came out, and there was a big rainbow. \"Let us go and play!\" said {N}.",
    "Then winter came, and it was cold. {N} had a warm home, and {F} came to stay. They told stories by the fire. When spring came, they ran out into {P} and {bank:play}.",
    "A week later, there was a big party {inP}. {N} and {F} were there too. They {bank:party}. {N} danced until {he} was tired. That night, {he} dreamed of {bank:dreamed}.",
    "The next day, {F} was sad. \"I have lost my {T},\" {fhe} said. \"Now I can help you,\" said {N}. They looked {inP}, and there it was. \"Thank you!\" said {F}. {END}",
    "Then {N} went home. {He} was very tired. {He} ate {aFood} and went to bed. That night, {he} dreamed of {bank:dreamed}. And the next day, {F} came to play again.",
]
