"""Puts one story together: heroes, a plot, and the clauses that SmolLM2 wrote."""

import random
import re

import plots
import world

BUILDS = ["boat", "house", "kite", "tree house", "bridge", "sled", "nest", "castle", "wagon", "robot", "swing"]
FARS = ["sea", "mountains", "big city", "moon", "snow", "desert", "rainbow", "jungle", "world", "North Pole", "stars"]
SCARIES = ["dragon", "giant", "monster", "bear", "wolf", "lion", "ghost", "troll", "crocodile", "shark", "dinosaur", "witch",
           "tiger", "big dog", "snake"]
SYLLABLES = "ba be bo da di do fa fi ga ka ki ko la le li lo lu ma mi mo na ne no pa pe pi po ra ri ro sa si ta ti to va vi wa zi zo zu".split()
# Kinds that a visitor may ask for and no clause was written for.
MORE_KINDS = """tortoise panther leopard wolf pup|lion cub|bear cub|polar bear|teddy bear|sea turtle|fire truck|steam train|
paper boat|sailing ship|submarine|helicopter|spaceship|racing car|garbage truck|snow fox|guinea pig|rat|gecko|iguana|parakeet|
canary|pigeon|dove|stork|heron|falcon|vulture|turkey|quail|puffin|sea lion|manatee|orca|narwhal|stingray|eel|salmon|clam|
shrimp|squid|worm|beetle|moth|wasp|flea|fly|mosquito|scorpion|tarantula|ladybird|bull|calf|mule|foal|piglet|kid|buffalo|bison|
antelope|gazelle|hyena|jackal|wombat|platypus|opossum|armadillo|anteater|lemur|baboon|chimpanzee|orangutan|mammoth|tyrannosaurus|
triceratops|weasel|ferret|mongoose|lynx|cougar|jaguar|samurai|ninja|superhero|detective|scientist|musician|pianist|violinist|
soldier|policeman|police officer|pilot|mailman|butcher|carpenter|blacksmith|tailor|shoemaker|hunter|thief|beggar|old man|old woman|
man|woman|baby|child|mother|father|sister|brother|uncle|aunt|twin|neighbor|student|cowboy|emperor|vampire|zombie|werewolf|
goblin|ogre|cyclops|genie|angel|sprite|leprechaun|centaur|pegasus|sea monster|kraken|yeti|android|computer|phone|television|
refrigerator|toaster|oven|pot|pan|cup|plate|fork|knife|bottle|glass|table|bed|pillow|blanket|door|window|key|lock|box|bag|hat|
coat|glove|shirt|dress|boot|ring|crown|sword|shield|piano|guitar|violin|trumpet|bell tower|castle|house|cottage|school|cloud|wind|
rain|storm|thunder|sun|planet|comet|sunbeam|shadow|wave|stone|pebble|island|volcano|hill|cave|forest|oak tree|pine tree|rose|
sunflower|daisy|mushroom|cactus|grape|orange|lemon|cherry|strawberry|tomato|onion|bean|pea|corn|bread|cheese|egg|pancake|muffin|
donut|pizza|sandwich|chocolate bar|lollipop|ice cream|snowball|ice cube|marble|puppet|rubber duck|jack in the box|music box|
rocking horse|tin soldier|paintbrush|crayon|eraser|notebook|letter|stamp|coin|bicycle|scooter|skateboard|wagon|wheel|bulldozer|
crane|ship|canoe|raft|anchor|goat kid|mouse king|frog prince|snow queen|swan princess|night light|flying carpet|wooden spoon"""
MORE_KINDS = [k.strip() for part in MORE_KINDS.replace("\n", "").split("|") for k in [part]]
MORE_KINDS = [k for part in MORE_KINDS for k in (part.split() if part.startswith("tortoise") else [part])]


def article(noun):
    return ("an " if re.match(r"(?!uni|use|one)[aeiou]", noun, re.I) else "a ") + noun


def plural(noun):
    for end, many in (("mouse", "mice"), ("sheep", "sheep"), ("fish", "fish"), ("goose", "geese"), ("wolf", "wolves"),
                      ("man", "men"), ("elf", "elves"), ("child", "children")):
        if noun.endswith(end):
            return noun[: -len(end)] + many
    if re.search(r"(s|x|ch|sh)$", noun):
        return noun + "es"
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + "s"


def made_up(rng):
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.choice([2, 2, 3]))) + rng.choice(["", "", "n", "r", "s", "x", "k"])


class Hero:
    """A character in a story: kind ("cat"), name or None, is_she, adjective or None."""

    def __init__(self, rng, kind=None, name=None, named=0.7, adjective=None):
        if kind is None:
            draw = rng.random()
            kind = (rng.choice(world.ANIMALS) if draw < 0.45 else rng.choice(world.PEOPLE + world.FANTASY) if draw < 0.68
                    else rng.choice(world.THINGS_ALIVE) if draw < 0.76 else rng.choice(MORE_KINDS) if draw < 0.96 else made_up(rng))
        self.kind = kind
        last = kind.split()[-1]
        self.is_she = (name in world.GIRLS if name in world.GIRLS or name in world.BOYS else last in world.SHE
                       or (last not in world.HE and rng.random() < 0.5))
        if name is None and rng.random() < named:
            name = rng.choice(world.GIRLS if self.is_she else world.BOYS) if rng.random() < 0.88 else made_up(rng).capitalize()
        self.name = name
        self.adjective = adjective if adjective is not None or rng.random() < 0.3 else rng.choice(world.ADJECTIVES)
        self.asked_name = False

    @property
    def reference(self):
        return self.name or f"the {self.kind}"

    def introduced(self, rng):
        kind = article(f"{self.adjective} {self.kind}" if self.adjective else self.kind)
        if self.name is None:
            return kind
        return f"{kind} {rng.choice(['named', 'named', 'named', 'called'])} {self.name}"

    def pronoun(self, masculine):
        if not self.is_she:
            return masculine
        return {"he": "she", "him": "her", "his": "her", "He": "She", "His": "Her"}[masculine]


class Story:
    """One story's people and things. `text(template)` fills a template in; what was introduced stays known."""

    def __init__(self, seed, banks, hero=None, friend=None, knows_friend=False, **given):
        self.rng = rng = random.Random(seed)
        self.banks = banks
        self.hero = hero or Hero(rng)
        plot = given.pop("plot", None)
        self.plot_name = plot or rng.choice([name for name in plots.PLOTS if name not in plots.NEEDS_A_WORD])
        self.plot = plots.PLOTS[self.plot_name]
        if friend is None:
            scary = given.get("scary") or rng.choice(SCARIES)
            given["scary"] = scary
            kind = scary if self.plot.get("friend") == "scary" else self._friend_kind()
            friend = Hero(rng, kind, named=0.25)
            if rng.random() < 0.5:
                friend.adjective = None
        if self.hero.name and friend.name == self.hero.name:
            friend.name = None
        self.friend = friend
        self.knows_friend = knows_friend
        thing = rng.choice(world.TOYS)
        color = rng.choice(world.COLORS)
        weather = rng.choice(["sunny", "rainy", "cold", "windy", "hot", "snowy", "foggy", "fine"])
        self.slots = {
            "T": thing, "color": color, "P": rng.choice(world.PLACES), "home": rng.choice(world.HOMES),
            "food": rng.choice(world.FOODS), "flower": rng.choice(world.FLOWERS), "fear": rng.choice(world.FEARS),
            "skill": rng.choice(world.SKILLS), "build": rng.choice(BUILDS), "far": rng.choice(FARS),
            "mthing": rng.choice(world.MAGIC), "weather": weather,
            "strong": rng.choice(["very strong", "tall", "beautiful", "just right", "big", "so nice"]),
            "on_ground": rng.choice(["in the grass", "under a tree", "on the ground", "behind a stone", "under a leaf"]),
            "word": rng.choice(world.WORDS) if rng.random() < 0.85 else made_up(rng), **given,
        }
        if self.plot_name == "snow":
            self.slots["weather"] = "snowy"

    def _friend_kind(self):
        kinds = world.HELPERS if self.rng.random() < 0.7 else world.ANIMALS + world.PEOPLE
        return self.rng.choice([kind for kind in kinds if kind != self.hero.kind])

    def text(self, template):
        choice = re.compile(r"\[([^\[\]]*)\]")
        while True:
            template, count = choice.subn(lambda m: self.rng.choice(m[1].split("|")), template)
            if count:
                continue
            macro = re.search(r"\{([A-Z_]{2,}|So|Then|There|End2)\}", self._shielded(template))
            if macro is None:
                break
            template = template[: macro.start()] + self._macro(macro[1], template) + template[macro.end():]
        filled = re.sub(r"\{([A-Za-z_:0-9]+)\}", lambda m: self._slot(m[1]), template)
        return tidy(filled)

    def _macro(self, name, text):
        """One of the macro's texts; not one whose clause the text has already."""
        texts = plots.MACROS[name]
        fresh = [t for t in texts if not any(clause in text for clause in re.findall(r"\{bank:\w+\}", t))]
        return self.rng.choice(fresh or texts)

    @staticmethod
    def _shielded(template):
        # FK is a slot, not a macro.
        return template.replace("{FK}", "{f_}")

    def whole(self):
        return self.text(self.plot["text"].replace("\n", " "))

    def title(self):
        title = self.text(self.rng.choice(self.plot["title"]).replace("{name}", "{titlename}"))
        small = {"a", "an", "the", "to", "of", "in", "and", "is", "for", "who"}
        words = [w if i and w.lower() in small else w[:1].upper() + w[1:] for i, w in enumerate(title.split())]
        return " ".join(words)

    def _slot(self, name):
        hero, friend, slots = self.hero, self.friend, self.slots
        if name.startswith("bank:"):
            return self._clause(name[5:])
        if name in ("he", "him", "his", "He", "His"):
            return hero.pronoun(name)
        if name in ("fhe", "fhim", "fhis"):
            return friend.pronoun(name[1:])
        if name in ("Fhe", "Fhis"):
            return friend.pronoun(name[1:].capitalize())
        if name == "F":
            if not self.knows_friend:
                self.knows_friend = True
                return friend.introduced(self.rng)
            return friend.reference
        lower = name.lower()
        fixed = {
            "N": lambda: hero.reference, "aK": lambda: hero.introduced(self.rng), "K": lambda: hero.kind,
            "W": lambda: slots["word"], "word": lambda: slots["word"], "third": lambda: slots["third"], "Nintro": lambda: hero.name or article(hero.kind), "Ncall": lambda: hero.name or "little " + hero.kind,
            "Fcall": lambda: friend.name or friend.kind, "FK": lambda: friend.kind, "f_": lambda: friend.kind,
            "titlename": lambda: hero.name or f"the {hero.kind}", "aT": lambda: article(f"{slots['color']} {slots['T']}"),
            "theT": lambda: f"the {slots['T']}", "aFood": lambda: article(slots["food"]),
        }
        if name == "inP":
            return f"{world.AT.get(slots['P'], 'in')} {slots['P']}"
        if name == "inhome":
            return slots["home"]
        if name in fixed:
            return fixed[name]()
        if name in slots:
            return slots[name]
        return slots[lower]

    def _clause(self, name):
        rng, hero, friend = self.rng, self.hero, self.friend
        if name == "night_all":
            moon = rng.choice(["moon was big", "stars were bright", "night was dark", "wind was soft", "sky was clear"])
            return f"{moon}, and {self._from('night', '')}"
        who = hero
        if name.startswith("f") and name[1:] in ("happy", "wanted_thing", "morning"):
            name, who = name[1:], friend
            if name == "morning":
                return self._spoken(self._from("morning", who.kind), who)
        if name == "wanted_thing":
            return self._spoken(self._from("found", self.slots["P"]), who)
        if name in ("play", "ever", "talked", "thanks"):
            return self._spoken(self._from(name, f"{hero.kind}+{friend.kind}"), who)
        keys = {"there": "P", "walk": "P", "smell": "P", "found": "P", "looked": "T", "used": "T", "because": "fear",
                "weather": "weather"}
        key = self.slots[keys[name]] if name in keys else "" if name.startswith(("learned", "party")) else who.kind
        return self._spoken(self._from(name, key), who)

    def _from(self, name, key):
        """A clause for the key, or one that was written for several keys."""
        own = self.banks[name].get(key, [])
        common = self.banks["common"][name]
        # The first are the most probable.
        if own and (self.rng.random() < 0.75 or not common):
            return own[min(int(self.rng.expovariate(0.5)), len(own) - 1)]
        return self.rng.choice(common)

    @staticmethod
    def _spoken(clause, who):
        if not who.is_she:
            return clause
        return re.sub(r"\b(he|him|his)\b", lambda m: who.pronoun(m[1]), clause)


def with_common(banks):
    """Adds, for keys that have no clauses of their own, those that fitted several keys."""
    common = {}
    for name, of_key in banks.items():
        counts = {}
        for clauses in of_key.values():
            for clause in clauses:
                counts[clause] = counts.get(clause, 0) + 1
        least = 3 if len(of_key) > 100 else 2 if len(of_key) > 20 else 1
        common[name] = sorted(c for c, count in counts.items() if count >= least) or sorted(counts)
    return {**banks, "common": common}


SPEECH = {"said", "asked", "cried", "called", "shouted", "whispered", "thought", "they", "it", "he", "she", "one"}


def tidy(text):
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s+([.,!?])", r"\1", text)
    text = re.sub(r"([.!?])\.", r"\1", text)

    def capital(match):
        before, word = match[1], match[2]
        if before.endswith('" ') and not before.startswith("."):
            # "..." said the cat: the sentence goes on, unless the quote ended with a stop and a new one begins.
            if word in SPEECH:
                return before + word
        return before + word[0].upper() + word[1:]

    text = re.sub(r'(^|[.!?] "?|[.!?]" "?)([a-z][a-z\']*)', capital, text)
    return text
