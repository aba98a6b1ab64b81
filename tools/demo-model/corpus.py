"""The conversations that the model learns from: seeded, one JSON object a line.

    python3 tools/demo-model/corpus.py --count 80000 > corpus.jsonl

Each line has an id (its seed) and either "messages" or "text" (a story by itself, for completions). Every 50th is held out
of training: its seeds are its own, so no held-out story is in the training set word for word.
"""

import argparse
import gzip
import json
import random
import re
import sys
from pathlib import Path

import chat
import plots
import story as stories
import world
from story import Hero, Story, article, plural

HELD_OUT_EVERY = 50


def as_typed(rng, text):
    """As people type: with or without a capital and a stop."""
    if text[-1] not in "?!.":
        text += rng.choice(["", "", "", ".", ".", "!"])
    draw = rng.random()
    if draw < 0.2:
        text = text.lower()
    elif draw < 0.3:
        text = text.rstrip(".?!")
    else:
        text = text[0].upper() + text[1:]
    return f"Please {text[0].lower()}{text[1:]}" if draw > 0.97 and not text.startswith(("I ", "I'")) else text


def hero_as_asked(rng, hero):
    """(what a visitor calls the hero, whether the name was said). The story has what was said."""
    if hero.name and rng.random() < 0.25:
        hero.adjective = hero.adjective if rng.random() < 0.5 else None
        kind = article(f"{hero.adjective} {hero.kind}" if hero.adjective else hero.kind)
        return rng.choice([f"{kind} named {hero.name}", f"{kind} named {hero.name}", f"{kind} called {hero.name}", f"{hero.name} the {hero.kind}"])
    if hero.name and rng.random() < 0.06:
        return hero.name
    draw = rng.random()
    if draw < 0.2 and hero.adjective:
        return article(f"{hero.adjective} {hero.kind}")
    if draw < 0.28:
        return plural(hero.kind)
    return f"the {hero.kind}" if draw < 0.36 else article(hero.kind)


def asked_story(rng, banks, seed):
    """(the subject as asked, the story)."""
    hero = Hero(rng)
    plot = rng.choice(list(plots.PLOTS))
    if rng.random() < 0.05:
        plot = "word"
    draw = rng.random()
    if plot == "word":
        story = Story(seed, banks, hero, plot=plot)
        return story.slots["word"], story
    if draw < 0.22 and plot != "scary":
        friend = Hero(rng, named=0.6 if hero.name else 0.1)
        while friend.kind == hero.kind or (friend.name and friend.name == hero.name):
            friend = Hero(rng, named=0.6 if hero.name else 0.1)
        asked = [hero_as_asked(rng, hero), hero_as_asked(rng, friend)]
        if asked[0] == plural(hero.kind) or asked[1] == plural(friend.kind):
            asked = [article(hero.kind), article(friend.kind)]
        subject = " and ".join(asked)
        story = Story(seed, banks, hero, friend, plot=plot, knows_friend=rng.random() < 0.6)
        if draw < 0.03 and story.knows_friend:
            third = Hero(rng, rng.choice(world.ANIMALS + world.PEOPLE), named=0).kind
            if third not in (hero.kind, friend.kind):
                story.slots["third"] = third
                return f"{asked[0]}, {asked[1]} and {article(third)}", story
        if draw < 0.06:
            subject += " " + rng.choice(["who are friends", "who are best friends", "who become friends", "who meet", "who play together"])
    else:
        scary = rng.choice(stories.SCARIES)
        story = Story(seed, banks, hero, plot=plot, scary=scary)
        subject = hero_as_asked(rng, hero)
        with_words = draw < 0.55 or plot == "scary"
        if with_words:
            words = rng.choice(story.plot["asks"])
            # A word that is asked for comes first: the slots are the story's.
            subject = as_words(story, subject, words, rng)
        elif draw < 0.62:
            subject += f" {story.text('{inP}')}"
            story.slots["where_asked"] = True
    return subject, story


def as_words(story, subject, words, rng):
    known = story.knows_friend
    words = story.text(words)
    story.knows_friend = known
    words = words[0].lower() + words[1:] if not words.startswith(story.hero.name or " ") else words
    if words.startswith("and ") and rng.random() < 0.3:
        return words[4:]
    return f"{subject} {words}"


def told(story, rng):
    """The story's text. Where two heroes were asked for, both are there from the beginning."""
    text = story.plot["text"].replace("\n", " ")
    if story.knows_friend:
        opening = rng.choice(["Once upon a time, there was {aK} and {bK}. They lived {inhome}.", "Once upon a time, {aK} and {bK} lived {inhome}. {LIFE}",
                              "There once was {aK} who was friends with {bK}.", "Once upon a time, there were two friends, {aK} and {bK}. {LIFE}"])
        third = story.slots.get("third")
        if third:
            opening = f"Once upon a time, there were three friends, {{aK}}, {{bK}} and {article(third)}. They lived {{inhome}}."
            text += rng.choice([f" And the {third} was happy too.", f" The {third} laughed and laughed.", f' "What a day!" said the {third}.'])
        text = text.replace("{OPEN}", opening.replace("{bK}", story.friend.introduced(story.rng)), 1)
        for phrase in ("{F} was {his} best friend. ",):
            text = text.replace(phrase, "")
    elif story.slots.get("where_asked"):
        text = text.replace("{OPEN}", "{OPEN_AT}", 1)
    return story.text(text)


plots.MACROS["OPEN_AT"] = ["Once upon a time, {aK} lived {inP}. {LIFE}", "Once upon a time, there was {aK} {inP}. {There}", "{inP}, there lived {aK}. {LIFE}"]


def short(story, rng):
    return story.text(rng.choice(plots.SHORT))


def after_story(rng, banks, seed, story, text):
    """What is said after a story: (request, answer) pairs."""
    hero, friend = story.hero, story.friend
    draw = rng.random()
    if draw < 0.3:
        return [(as_typed(rng, rng.choice(chat.NEXT_ASKS)), story.text(rng.choice(plots.NEXT)))]
    if draw < 0.42:
        return [(as_typed(rng, rng.choice(chat.TITLE_ASKS)), story.title())]
    if draw < 0.52:
        again = Story(seed + 1, banks, hero, story.friend, knows_friend=False)
        return [(as_typed(rng, rng.choice(chat.SHORT_ASKS)), short(again, rng))]
    if draw < 0.6:
        questions, answers = chat.TALK[4]
        return [(rng.choice(questions), rng.choice(answers))]
    if draw < 0.68:
        if hero.name and rng.random() < 0.6:
            return [(as_typed(rng, rng.choice(chat.NAME_ASKS).format(k=hero.kind)), f"The {hero.kind} was called {hero.name}.")]
        if hero.name and rng.random() < 0.3:
            return [(as_typed(rng, rng.choice(chat.WHO_ASKS).format(n=hero.name)), f"{hero.name} is {article(hero.kind)}.")]
        who = f"{friend.name} the {friend.kind}" if friend.name else article(friend.kind)
        return [(as_typed(rng, rng.choice(chat.FRIEND_ASKS).format(n=hero.reference)), f"It was {who}.")]
    if draw < 0.74:
        lesson = re.search(r"learned that ([^.]*)\.", text)
        if lesson:
            answer = f"{hero.reference} learned that {lesson[1]}."
            return [(as_typed(rng, rng.choice(chat.MORALS).format(n=hero.reference)), answer[0].upper() + answer[1:])]
    subject, other = asked_story(rng, banks, seed + 2)
    if draw < 0.84:
        return [(as_typed(rng, rng.choice(chat.ANOTHER_ASKS)), told(other, rng))]
    return [(as_typed(rng, rng.choice(chat.ANOTHER_ABOUT).format(x=subject)), told(other, rng))]


def small_talk(rng, banks):
    draw = rng.random()
    questions = [q for of_key in banks["question"].values() for q in of_key]
    if draw < 0.18:
        return rng.choice(questions), rng.choice(chat.CANNOT)
    if draw < 0.3:
        kind = Hero(rng).kind
        forms = {"x": article(kind), "m": plural(kind)}
        return rng.choice(chat.ABOUT_QUESTIONS).format(**forms), rng.choice(chat.ABOUT_ANSWERS).format(**forms)
    asks, answers = rng.choice(chat.TALK[:1] * 4 + chat.TALK[1:2] * 3 + chat.TALK[2:-1] + chat.TALK[-1:] * 4)
    return rng.choice(asks), rng.choice(answers)


def conversation(seed, banks):
    rng = random.Random(seed)
    draw = rng.random()
    pairs = []
    if draw < 0.08:
        story = Story(seed * 7, banks)
        return {"id": seed, "text": told(story, rng)}
    if draw < 0.2:
        request, answer = small_talk(rng, banks)
        pairs.append((as_typed(rng, request) if request[-1].isalpha() else request, answer))
    if draw < 0.13:
        # A story after the talk, or only the talk.
        subject, story = asked_story(rng, banks, seed * 7)
        if draw < 0.10 and "?" in pairs[-1][1]:
            pairs.append((as_typed(rng, rng.choice(chat.YES)), told(Story(seed * 7, banks), rng)))
        else:
            pairs.append((as_typed(rng, rng.choice(chat.ASKS).format(x=subject)), told(story, rng)))
    elif draw >= 0.2:
        plain = draw < 0.27
        subject, story = asked_story(rng, banks, seed * 7)
        if plain:
            story = Story(seed * 7, banks)
        if draw > 0.95:
            request, text = rng.choice(chat.SHORT_ABOUT).format(x=subject), short(story, rng)
        else:
            request = rng.choice(chat.PLAIN_ASKS) if plain else rng.choice(chat.ASKS).format(x=subject)
            text = told(story, rng)
        pairs.append((as_typed(rng, request), text))
        if rng.random() < 0.28:
            pairs += after_story(rng, banks, seed * 7, story, text)
    messages = [{"role": "system", "content": rng.choice(chat.SYSTEM_PROMPTS)}] if rng.random() < 0.1 else []
    for request, answer in pairs:
        messages += [{"role": "user", "content": request}, {"role": "assistant", "content": answer}]
    return {"id": seed, "messages": messages}


def is_held_out(seed):
    return seed % HELD_OUT_EVERY == 0


def is_fine(line):
    """No slot left open, no word twice in a row, only plain characters."""
    texts = [line["text"]] if "text" in line else [m["content"] for m in line["messages"]]
    return all(t.isascii() and not re.search(r"[{}\[\]|]|\b(\w+) \1\b", t) and 0 < len(t) < 1600 for t in texts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--phrases", default=Path(__file__).with_name("phrases.json.gz"))
    parser.add_argument("--count", type=int, default=60000)
    parser.add_argument("--first", type=int, default=1)
    flags = parser.parse_args()
    banks = stories.with_common(json.load(gzip.open(flags.phrases)))
    for seed in range(flags.first, flags.first + flags.count):
        line = conversation(seed, banks)
        if is_fine(line):
            sys.stdout.write(json.dumps(line) + "\n")
