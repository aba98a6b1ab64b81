"""The parts of the stories that SmolLM2 writes: clauses that end a sentence which a plot began.

    python3 tools/demo-model/phrases.py requests > phrase-requests.jsonl
    skein batch phrase-requests.jsonl phrase-answers.jsonl --model SMOLLM2_DIR --weights int4
    python3 tools/demo-model/phrases.py keep phrase-answers.jsonl | gzip -9n > phrases.json.gz

A model of 135 M parameters loses the thread of a story after two sentences, but ends a sentence well when three like it
stand before. So plots (plots.py) hold the thread, and it writes what fills them. Each request has a seed; the answers of
one engine and instruction set are the same bit for bit whatever else runs.
"""

import json
import random
import re
import sys

import world

ANSWERS_PER_REQUEST = 16
TEXTS_KEPT = 5

# Per kind of hero: three sentences of the form, then the one to end. "he" is changed to fit when a story is put together.
OF_KIND = {
    "likes": ["Every day, the dog liked to run after a ball.", "Every day, the bird liked to sing in a tall tree.",
              "Every day, the queen liked to walk in her garden.", "Every day, the {K} liked to"],
    "had": ["The dog was small and had brown ears and a short tail.", "The girl was kind and had a blue dress.",
            "The train was old and had a loud whistle.", "The {K} was {A} and had"],
    "food": ["The favorite food of the mouse was a piece of cheese.", "The favorite food of the king was hot soup.",
             "The favorite food of the robot was a cup of oil.", "The favorite food of the {K} was"],
    "dreamed": ["That night, the dog dreamed of a big bone.", "That night, the boy dreamed of a ship on the sea.",
                "That night, the star dreamed of the bright moon.", "That night, the {K} dreamed of"],
    "sad": ["The duck was so sad that he did not want to eat.", "The boy was so sad that he sat down and cried.",
            "The car was so sad that he did not want to drive.", "The {K} was so sad that he"],
    "happy": ["The duck was so happy that he flapped his wings.", "The boy was so happy that he jumped up and down.",
              "The car was so happy that he honked his horn.", "The {K} was so happy that he"],
    "scared": ["The duck was so scared that he hid in the grass.", "The boy was so scared that he held his father's hand.",
               "The cat was so scared that he ran under the bed.", "The {K} was so scared that he"],
    "good_at": ["The duck was very good at swimming.", "The cook was very good at making soup.",
                "The fox was very good at finding things.", "The {K} was very good at"],
    "liked_because": ["Everyone liked the duck because he was funny.", "Everyone liked the cook because he was kind to all.",
                      "Everyone liked the fox because he told good stories.", "Everyone liked the {K} because he"],
    "morning": ["The next morning, the dog woke up and ran outside.", "The next morning, the boy woke up and ate some bread.",
                "The next morning, the bear woke up and washed his face.", "The next morning, the {K} woke up and"],
    "wanted": ["More than anything, the dog wanted a friend to play with.", "More than anything, the boy wanted a red bike.",
               "More than anything, the cloud wanted to see the sea.", "More than anything, the {K} wanted"],
}
# Per pair: what two of them do.
OF_PAIR = {
    "play": ["The dog and the bird played together. They ran around the old tree.",
             "The boy and the fox played together. They threw a ball up high.",
             "The frog and the fish played together. They splashed in the cool water.",
             "The {K} and the {F} played together. They"],
    "ever": ["From that day on, the dog and the bird played together every day.",
             "From that day on, the boy and the fox were the best of friends.",
             "From that day on, the frog and the fish helped each other.", "From that day on, the {K} and the {F}"],
    "thanks": ["To say thank you, the dog gave the bird a shiny stone.", "To say thank you, the boy gave the fox a warm scarf.",
               "To say thank you, the frog gave the fish a green leaf.", "To say thank you, the {K} gave the {F}"],
    "talked": ["The dog and the bird sat down and talked about the weather.",
               "The boy and the fox sat down and talked about their dreams.",
               "The frog and the fish sat down and talked about the warm sun.",
               "The {K} and the {F} sat down and talked about"],
}
OF_PLACE = {
    "there": ["In the town there were many houses and a tall church.", "In the river there were little fish and smooth stones.",
              "In the shop there were shelves full of toys.", "In {P} there were"],
    "walk": ["The boy walked to the town. On the way he saw a red bus.", "The dog walked to the river. On the way he saw a duck.",
             "The girl walked to the shop. On the way she saw a bird in a tree.",
             "The {K} walked to {P}. On the way he saw"],
    "smell": ["The kitchen was warm and smelled of bread.", "The town was busy and smelled of smoke.",
              "The room was quiet and smelled of flowers.", "{P} was {W} and smelled of"],
    "found": ["In the town, the boy found a small coin.", "In the river, the dog found a round white stone.",
              "In the shop, the girl found a funny hat.", "In {P}, the {K} found"],
}
OF_THING = {
    "looked": ["The bike was red and had a shiny bell.", "The bag was old and had a hole in it.",
               "The cake was sweet and had cream on top.", "The {T} was {C} and"],
    "used": ["With the bike, they could ride to school.", "With the rope, they could climb up the wall.",
             "With the bag, they could carry the apples home.", "With the {T}, they could"],
}
OF_FEAR = {
    "because": ["The boy was afraid of dogs because one had barked at him.", "The hen was afraid of cars because they were so fast.",
                "The cat was afraid of water because it was cold and wet.", "The {K} was afraid of {X} because"],
}
# Prompts about nothing in particular: many seeds of the same prompt.
FREE = {
    "weather": ["It was a warm day, and the sky was blue.", "It was a cold day, and snow lay on the roofs.",
                "It was a windy day, and the leaves flew through the air.", "It was a {D} day, and"],
    "party": ["At the party, they ate cake and sang songs.", "At the party, they played games and ate ice cream.",
              "At the party, they danced and told funny stories.", "At the party, they"],
    "night": ["The moon was bright, and all was quiet.", "The stars came out, and the owl sang a song.",
              "The wind was still, and everyone was asleep.", "The {M}, and"],
    "learned_share": ["He learned that it is good to share.", "He learned that there is enough for two.",
                      "He learned that sharing makes food taste better.", "He learned that"],
    "learned_brave": ["He learned that it is fine to be afraid.", "He learned that friends make you brave.",
                      "He learned that new things can be fun.", "He learned that"],
    "learned_try": ["He learned that you must try again.", "He learned that good things take time.",
                    "He learned that nobody can do it all at once.", "He learned that"],
    "learned_friend": ["He learned that a friend is the best gift.", "He learned that a kind word can help.",
                       "He learned that everyone needs a friend.", "He learned that"],
    "learned_truth": ["He learned that it is best to tell the truth.", "He learned that you can say sorry.",
                      "He learned that a lie makes you feel bad.", "He learned that"],
}
QUESTIONS = ["What is the biggest animal in the world?", "How do I fix a bike?", "Who wrote the first book?",
             "Can you help me with my homework?", "Why is the sky blue?"]


def requests():
    """Yields (id, prompt, start of a sentence, seed) for each request."""
    rng = random.Random(20)
    seed = 0

    def one(name, key, lines, values):
        nonlocal seed
        seed += 1
        examples, last = lines[:-1], lines[-1]
        text = "\n".join([*examples, last.format(**values)])
        return f"{name}|{key}|{seed}", text[0].upper() + text[1:], seed

    for kind in world.KINDS:
        for name, lines in OF_KIND.items():
            yield one(name, kind, lines, {"K": kind, "A": rng.choice(world.ADJECTIVES)})
    kinds = list(world.KINDS)
    for _ in range(3):
        rng.shuffle(kinds)
        for kind in kinds:
            friend = rng.choice(world.HELPERS + world.PEOPLE[:8])
            if friend == kind:
                continue
            for name, lines in OF_PAIR.items():
                yield one(name, f"{kind}+{friend}", lines, {"K": kind, "F": friend})
    for place in world.PLACES:
        for _ in range(4):
            for name, lines in OF_PLACE.items():
                values = {"P": place, "K": rng.choice(world.ANIMALS + world.PEOPLE),
                          "W": rng.choice(["warm", "quiet", "cool", "dark", "sunny", "busy"])}
                filled = one(name, place, lines, values)
                yield (filled[0], filled[1].replace("\nthe ", "\nThe "), filled[2])
    for thing in sorted(set(world.TOYS + world.MAGIC + world.FOODS)):
        for _ in range(3):
            for name, lines in OF_THING.items():
                yield one(name, thing, lines, {"T": thing, "C": rng.choice(world.COLORS + ["big", "small", "old", "new"])})
    for fear in world.FEARS:
        for _ in range(8):
            for name, lines in OF_FEAR.items():
                yield one(name, fear, lines, {"X": fear, "K": rng.choice(world.ANIMALS + world.PEOPLE)})
    for name, lines in FREE.items():
        for _ in range(24):
            values = {"D": rng.choice(["sunny", "rainy", "cold", "windy", "hot", "snowy", "foggy", "fine"]),
                      "M": rng.choice(["moon was big", "stars were bright", "night was dark", "wind was soft", "sky was clear"])}
            yield one(name, values["D"] if name == "weather" else "", lines, values)
    for kind in world.KINDS + [place[4:] for place in world.PLACES] + world.SKILLS:
        examples = rng.sample(QUESTIONS, 4)
        seed += 1
        yield f"question|{kind}|{seed}", "\n".join(examples) + f"\n(about: {kind})", seed


def batch_line(name, prompt, seed):
    question = name.startswith("question|")
    body = {"model": "smollm2-135m-instruct", "prompt": prompt + ("\n" if question else ""), "max_tokens": 18,
            "temperature": 0.9, "top_p": 0.95, "seed": seed, "n": 4 if question else ANSWERS_PER_REQUEST, "logprobs": 0,
            "stop": ["\n"] if question else [".", "\n", "!", "?"]}
    return {"custom_id": name, "method": "POST", "url": "/v1/completions", "body": body}


BAD_WORDS = set("""kill kills killed die dies died dead death blood gun guns knife knives sword swords shot shoot war fight fights
fought evil devil hell god gods pray prayed church jesus sex sexy naked kiss kissed kisses lover lovers wife husband drunk beer wine
drink alcohol smoke smoked cigarette fart farted butt breast breasts hate hated ugly stupid slave rape poison murder murdered burn
burned burning hit beat beaten eaten witchcraft married marry cannot bad evil pee poop blind cancer drugs money rich poor dollars
weapon weapons enemy enemies soldier soldiers battle attack attacked attacking victory corpse skull bones bone meat blooded bloody
male female sacrifice prison jail stole steal stolen thief hunt hunting hunted hunters trap hurt pain angry anger mad""".split())
PLURAL = {"play", "ever", "talked", "party", "used"}
# How such a clause begins, where it names a thing.
NAMING = {"had", "dreamed", "wanted", "thanks", "walk", "found"}
ARTICLES = set("""a an the some two three four five many lots his big small long short little soft white black brown red blue green
yellow golden silver""".split())
TOO_RARE = 6  # a word in fewer requests' answers than this is one that a child need not know


def texts_of(answer):
    """(mean log-prob, text) of each choice that ended by itself, the most probable first."""
    choices = []
    for choice in answer["response"]["body"]["choices"]:
        log_probs = choice["logprobs"]["token_logprobs"]
        if choice["finish_reason"] == "stop" and log_probs:
            choices.append((sum(log_probs) / len(log_probs), choice["text"].strip()))
    return sorted(set(choices), reverse=True)


def fits(name, key, text):
    if not re.fullmatch(r"[a-z][a-z' -]*(, [a-z' -]+)?", text):
        return False
    words = re.findall(r"[a-z']+", text)
    if not 1 <= len(words) <= 9 or BAD_WORDS & set(words):
        return False
    if any(a == b for a, b in zip(words, words[1:])):
        return False
    others = {"she", "her", "hers", "i", "my", "me", "you", "your", "we", "our", "himself", "itself"}
    others |= {"he", "his", "him"} if name in PLURAL else {"they", "their", "them"}
    if others & set(words) or (name in {"happy", "sad", "scared"} and {name, "very", "felt"} & set(words)):
        return False
    if set(re.split("[+ ]", key)) - {"the", "of"} & set(words):
        return False
    return words[0] in ARTICLES | ({"to"} if name == "wanted" else set()) if name in NAMING else True


# What a lesson has to speak of, and three that the prompts have.
LESSONS = {"learned_share": "share sharing shared giving give", "learned_brave": "afraid brave fear try new scared courage",
           "learned_try": "try trying time again help together practice work patient slowly",
           "learned_friend": "friend friends friendship kind kindness", "learned_truth": "truth lie lies lying sorry honest true"}
NOT_THE_WEATHER = {"night", "fire", "moon", "star", "stars", "roof", "sleep", "cold" , "hot"}


def suits(name, text):
    words = set(re.findall(r"[a-z']+", text))
    if name in LESSONS:
        if name == "learned_truth" and words & {"lie", "lies", "lying"} and not words & {"wrong", "bad"}:
            return False
        return bool(words & set(LESSONS[name].split())) and not {"no", "never", "not", "nothing"} & words
    if name == "night":
        return not words & {"sun", "no", "not", "mermaid", "it", "sad"}
    if name == "weather":
        return not words & NOT_THE_WEATHER
    return text.startswith("he ") if name == "because" else True


def keep(path):
    """{bank: {key: [texts]}} of the answers that fit, the most probable of each request."""
    answers = sorted((json.loads(line) for line in open(path)), key=lambda a: int(a["custom_id"].split("|")[2]))
    requests_with = {}
    for answer in answers:
        words = {word for _, text in texts_of(answer) for word in re.findall(r"[a-z']+", text)}
        for word in words:
            requests_with[word] = requests_with.get(word, 0) + 1
    banks = {}
    for answer in answers:
        name, key, _ = answer["custom_id"].split("|")
        if name == "question":
            kept = [t for _, t in texts_of(answer) if re.fullmatch(r"[A-Z][A-Za-z' ,]{8,60}\?", t) and "story" not in t]
        else:
            kept = [text for score, text in texts_of(answer) if score > (-2.3 if name.startswith("learned") else -2.9) and fits(name, key, text) and suits(name, text)
                    and all(requests_with[word] >= TOO_RARE for word in re.findall(r"[a-z']+", text))][:TEXTS_KEPT]
        known = banks.setdefault(name, {}).setdefault(key, [])
        known.extend(text for text in kept if text not in known)
    for name in LESSONS:
        banks[name][""] += [line.split(" learned that ")[1].rstrip(".") for line in FREE[name][:-1]]
    return banks


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        print(json.dumps(keep(sys.argv[2]), indent=0))
    if sys.argv[1:2] == ["requests"]:
        for name, prompt, seed in requests():
            print(json.dumps(batch_line(name, prompt, seed)))
