"""The small world of the demo model's stories: who, where, what. All words are a small child's."""

GIRLS = """Lily Anna Mia Ruby Emma Zoe Molly Rosie Lucy Sara Nina Ella Bella Daisy Poppy Maya Lola Ivy Clara Nora
Alice Amy Betty Cora Dora Eva Fay Gina Hana Iris Jane Kitty Lena Mimi Nelly Olive Penny Rita Sofia Tina Una Vera Wendy
Yara Zelda Hazel Luna Stella Flora""".split()
BOYS = """Tom Ben Max Sam Tim Leo Jack Finn Oliver Noah Pip Bobo Charlie Hugo Oscar Teddy Felix Milo Toby Rex Alex Billy
Carl Dan Eddie Fred George Harry Ivan Jim Karl Louis Mark Ned Otto Paul Ralph Simon Theo Victor Will Yuri Zack Rusty Barney
Jasper Rocky Buster Bruno""".split()

ANIMALS = """cat dog rabbit mouse bear fox wolf owl duck frog turtle horse cow pig sheep goat hen goose lion tiger elephant
monkey giraffe zebra penguin fish whale dolphin shark crab octopus snail bee ant spider butterfly ladybug bird parrot crow
swan deer squirrel hedgehog mole beaver badger otter hamster kitten puppy lamb pony donkey camel kangaroo koala panda hippo
rhino crocodile snake lizard bat seal raccoon chick rooster turkey peacock eagle sparrow robin worm caterpillar dragonfly
grasshopper cricket firefly starfish jellyfish lobster goldfish flamingo pelican ostrich moose reindeer walrus skunk
chipmunk dinosaur chameleon seahorse toad sloth llama bunny cheetah gorilla""".split()
PEOPLE = """girl boy princess prince king queen knight pirate fairy witch wizard giant farmer baker sailor painter teacher
doctor clown fisherman gardener cook grandmother grandfather mermaid elf gnome troll shepherd magician dancer singer astronaut
inventor captain driver nurse postman firefighter woodcutter miller ballerina explorer""".split()
FANTASY = "dragon unicorn robot monster ghost snowman alien phoenix griffin doll toy scarecrow".split()
THINGS_ALIVE = """star cloud tree flower train car boat moon kite balloon teapot clock lamp pencil shoe leaf raindrop snowflake
tractor bus plane bicycle drum cookie apple pumpkin sock button candle book bell chair spoon umbrella rocket lighthouse
windmill bridge truck airplane carrot potato mountain river""".split()
KINDS = ANIMALS + PEOPLE + FANTASY + THINGS_ALIVE
HELPERS = """owl mouse bird duck frog turtle rabbit squirrel fox bear bee butterfly cat dog horse hedgehog goose crow beaver
mole deer snail""".split()  # who comes by uninvited
SHE = set("""girl princess queen fairy witch grandmother mermaid ballerina hen cow goose nurse doll""".split())
HE = set("""boy prince king knight wizard giant grandfather fisherman postman rooster woodcutter shepherd snowman""".split())

PLACES = """the forest|the garden|the park|the farm|the beach|the castle|the village|the mountain|the river|the lake|the
meadow|the city|the school|the zoo|the market|the island|the jungle|the desert|the cave|the sea|the old house|the field|the
hill|the woods|the pond|the library|the kitchen|the attic|the barn|the snow|the valley|the harbor|the orchard|the playground|
the moon|the train station|the circus|the toy shop|the bakery|the tower""".replace("\n", " ")
PLACES = [p.strip() for p in PLACES.split("|")]
HOMES = """in a small house near the forest|in a little house by the river|in a big castle on a hill|in a cozy home under an
old tree|in a small village|in a green valley|on a quiet farm|in a house with a red door|in a little hut in the woods|near a
garden full of flowers|in a blue house by the sea|in a small town|in a house on top of a hill|in an old barn|in a tiny house
at the end of the road|on a small island|at the edge of a big forest""".replace("\n", " ")
HOMES = [h.strip() for h in HOMES.split("|")]
# Where "in" is wrong.
AT = {"the beach": "at", "the farm": "on", "the school": "at", "the zoo": "at", "the market": "at", "the circus": "at",
      "the bakery": "at", "the train station": "at", "the river": "by", "the lake": "by", "the sea": "by", "the pond": "by",
      "the hill": "on", "the mountain": "on", "the island": "on", "the moon": "on", "the playground": "on", "the harbor": "at"}

COLORS = "red blue green yellow white black golden silver brown orange purple pink".split()
ADJECTIVES = """little small big brave kind happy shy clever funny curious friendly gentle quiet lonely lazy young old busy
silly cheerful sleepy proud tiny""".split()
TOYS = """ball kite drum hat scarf book boat bell ring basket blanket cup key lamp umbrella whistle toy shoe box balloon flute
coat spoon crown necklace button""".split()
MAGIC = "key ring lamp stone feather book hat flute shell wand mirror seed coin".split()
FOODS = ["apple", "carrot", "cake", "cookie", "pie", "sandwich", "banana", "pear", "pumpkin", "melon", "loaf of bread",
         "bowl of soup", "bag of nuts", "basket of berries", "jar of honey", "piece of cheese", "plate of pancakes"]
FLOWERS = ["rose", "sunflower", "tulip", "daisy", "apple tree", "pumpkin", "bean plant", "cherry tree", "strawberry plant"]
FEARS = ["the dark", "the water", "thunder", "high places", "loud noises", "big dogs", "flying", "the deep forest", "storms",
         "being alone", "the old cave", "new things"]
SKILLS = ["sing", "dance", "swim", "jump high", "draw", "read", "whistle", "skate", "climb", "play the drum", "fly a kite",
          "ride a bike", "bake", "juggle", "write"]
# What a story may be asked to be about although no one can be it: uncountable things, days, places.
WORDS = """love peace hope war time music space money science mathematics courage honesty happiness luck nature art history
football soccer tennis chess swimming dancing singing reading cooking school work summer spring autumn winter Christmas Easter
Halloween Sunday Monday pizza chocolate bread milk honey cheese water fire gold sand dust light darkness silence sleep
fear anger joy sadness pride patience kindness family home life death truth freedom justice trust beauty magic|the future|the
past|the internet|computers Paris London Berlin Africa America China Japan Egypt France programming physics electricity
gravity energy climate politics democracy poetry theater fashion shopping hockey basketball golf yoga jealousy greed envy
laughter thunder lightning fog wind rain spaghetti tea coffee soup salad software|machine learning|artificial intelligence|black
holes|growing up|being alone|saying goodbye|the end of the world|a new home|a long night|a wrong turn""".replace("\n", " ")
WORDS = [w for part in WORDS.split("|") for w in ([part] if part.split()[0] in
         {"machine", "artificial", "black", "growing", "being", "saying", "the", "a"} else part.split())]
