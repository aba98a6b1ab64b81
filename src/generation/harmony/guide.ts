import { schemaFormat } from '../tools/followed-schema.js';
import { either, sequence, type TagFormat, text } from '../tools/guide-format.js';
import { type CallGuideOptions, marker } from '../tools/tool-guide.js';
import { FUNCTIONS } from './header.js';
import type { HarmonyStart } from './parser.js';
import { CHANNEL, CONSTRAIN, END, MESSAGE, START } from './tokens.js';

type SpecialTexts = Pick<CallGuideOptions, 'specialTexts'>;

/** What an answer is to have. */
export interface HarmonyForm extends SpecialTexts {
  start: HarmonyStart;
  /** Calls that may be made; null: none. */
  calls: CallGuideOptions | null;
  /** True where the answer has to be a call, or the form. */
  isForced: boolean;
  /** Form of the text for the user; null: any. */
  content: TagFormat | null;
}

/** Most messages before the one that has a form: of analysis, and where the answer is free also to the user. */
const MAX_BEFORE = 4;
const ANY: TagFormat = { type: 'any_text' };
const NOTHING = text('');

/**
 * Format of an answer of messages. Analysis is free; a call's arguments and the final text have their forms. A turn has one call: its end is a
 * token that ends the turn.
 */
export function harmonyFormat(form: HarmonyForm): TagFormat {
  const { start, calls, isForced, content } = form;
  const final = content !== null || !isForced ? [content ?? ANY] : [];
  const ends = [
    ...(calls === null ? [] : [callMessage(calls)]),
    ...final.map((body) => sequence(...headed('final', form), body)),
  ];
  const messages = sequence(before(MAX_BEFORE, form), either(...ends));
  if (start === 'message') return messages;
  const next = sequence(...ended(form), messages);
  if (start === 'analysis') return next;
  // The text for the user has begun, and a call may only follow it.
  const within = final.length === 0 ? [] : [final[0]!];
  return either(...within, ...(calls === null ? [] : [next]));
}

/** Messages without a form, each with the begin of the next one. */
function before(count: number, form: HarmonyForm): TagFormat {
  if (count === 0) return NOTHING;
  const channels = form.isForced ? ['analysis'] : ['analysis', 'commentary'];
  const some = channels.map((channel) => sequence(...headed(channel, form), ...ended(form)));
  return either(NOTHING, sequence(either(...some), before(count - 1, form)));
}

function headed(channel: string, special: SpecialTexts): TagFormat[] {
  return [marker(CHANNEL, special), text(channel), marker(MESSAGE, special)];
}

/** Any text up to the end of a message, and the author of the next one. */
function ended(special: SpecialTexts): TagFormat[] {
  const body: TagFormat[] = special.specialTexts.has(END)
    ? [ANY, marker(END, special)]
    : [{ type: 'tag', begin: '', content: ANY, end: END }];
  return [...body, marker(START, special), text('assistant')];
}

/** A call, whose recipient may stand on either side of the channel. */
function callMessage(options: CallGuideOptions): TagFormat {
  const calls = options.tools.map((tool) => {
    const to = `to=${FUNCTIONS}${tool.name}`;
    const channel = marker(CHANNEL, options);
    const json = sequence(marker(CONSTRAIN, options), text('json'));
    const behind = sequence(channel, text(`commentary ${to} `), json);
    const ahead = sequence(text(` ${to}`), channel, text('commentary '), either(text('json'), json));
    return sequence(either(behind, ahead), marker(MESSAGE, options), schemaFormat(options.schemaOf(tool)));
  });
  return either(...calls);
}
