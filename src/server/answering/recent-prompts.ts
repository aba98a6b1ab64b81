import type { PromptTokens } from '../../generation/text-model.js';
import type { PromptParting } from '../web/prompt-parting.js';

/** Tokens that are computed again are worth a word from here on. */
const FEWEST_REPEATED = 256;
/** Bounds of what is remembered: prompts, and their tokens. The last prompt is remembered whatever its length. */
const MAX_PROMPTS = 32;
const MAX_TOKENS = 2 ** 20;

/** Tokens of a window, and of how many windows one is an anchor: places that are found again wherever their text has moved to. */
const WINDOW = 8;
const ANCHOR_OF = 16;

interface Remembered {
  /** Model and cache salt: prompts of others are not compared. */
  of: string;
  tokens: PromptTokens;
  /**
   * Made when another prompt is first compared with it: those of a chat that is merely continued never are.
   */
  anchors: ReadonlySet<number> | null;
}

/**
 * The prompts of the last chats. A chat whose next turn only adds to it shares its whole beginning with the
 * turn before; one at whose head something has changed (a date, an id, a count of tokens) shares what comes
 * before that, and nothing of the rest:
 *
 *   before   | you are an agent | 12:31 | tools ................ | history ........ |
 *   now      | you are an agent | 12:34 | tools ................ | history ........ | next question |
 *             at ---------------^         repeated --------------------------------^
 */
export class RecentPrompts {
  /** The last one comes last. */
  readonly #prompts: Remembered[] = [];
  #tokens = 0;

  /**
   * Remembers a prompt. Null: it continues an earlier one, or has little in common with any.
   * @param of model and cache salt
   */
  note(of: string, tokens: PromptTokens): PromptParting | null {
    const others = this.#prompts.filter((prompt) => prompt.of === of);
    const shared = others.map((prompt) => sharedTokens(prompt.tokens, tokens));
    const at = Math.max(0, ...shared);
    const longest = others[shared.indexOf(at)];
    const goesOn = longest !== undefined && at === longest.tokens.length;
    if (goesOn) this.#forget(longest);
    this.#remember({ of, tokens, anchors: null });
    const isLong = tokens.length - at >= FEWEST_REPEATED;
    const repeated = goesOn || !isLong ? 0 : mostRepeated(others, tokens, at);
    return repeated < FEWEST_REPEATED ? null : { at, promptTokens: tokens.length, repeated };
  }

  #remember(prompt: Remembered): void {
    this.#prompts.push(prompt);
    this.#tokens += prompt.tokens.length;
    while (this.#prompts.length > 1 && (this.#prompts.length > MAX_PROMPTS || this.#tokens > MAX_TOKENS))
      this.#forget(this.#prompts[0]!);
  }

  #forget(prompt: Remembered): void {
    this.#prompts.splice(this.#prompts.indexOf(prompt), 1);
    this.#tokens -= prompt.tokens.length;
  }
}

function sharedTokens(a: PromptTokens, b: PromptTokens): number {
  const most = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < most && a[shared] === b[shared]) shared++;
  return shared;
}

/** Hashes of a prompt's anchors from a place on. */
function anchorsFrom(tokens: PromptTokens, first: number): number[] {
  const anchors: number[] = [];
  for (let at = first; at + WINDOW <= tokens.length; at++) {
    let hash = 0x811c9dc5;
    for (let i = 0; i < WINDOW; i++) hash = Math.imul(hash ^ tokens[at + i]!, 0x01000193);
    hash ^= hash >>> 15;
    if ((hash >>> 0) % ANCHOR_OF === 0) anchors.push(hash);
  }
  return anchors;
}

/**
 * The most tokens from `at` on that one of these prompts shares, estimated by its share of common anchors.
 */
function mostRepeated(prompts: readonly Remembered[], tokens: PromptTokens, at: number): number {
  const hashes = anchorsFrom(tokens, at);
  if (hashes.length === 0) return 0;
  const found = prompts.map((prompt) => {
    prompt.anchors ??= new Set(anchorsFrom(prompt.tokens, 0));
    const { anchors } = prompt;
    return hashes.filter((hash) => anchors.has(hash)).length;
  });
  return Math.round((Math.max(0, ...found) / hashes.length) * (tokens.length - at));
}
