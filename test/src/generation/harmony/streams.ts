import { readFileSync } from 'node:fs';
import { HarmonyParser } from '../../../../src/generation/harmony/parser.js';
import { HARMONY_TOKENS, type HarmonyToken, markOf } from '../../../../src/generation/harmony/tokens.js';
import { PartList } from '../../../../src/generation/tools/part-list.js';
import type { AnswerPart } from '../../../../src/generation/tools/types.js';
import type { ReadStream } from '../../../../tools/judge-harmony/stream.js';

/** A stream of tokens, and what openai-harmony reads; see tools/reference/harmony.py. */
export interface HarmonyStream {
  name: string;
  /** Special tokens by their texts, others by their bytes as hexadecimal digits. */
  tokens: string[];
  read: ReadStream;
}

export interface HarmonyGolden {
  streams: HarmonyStream[];
  schema: object;
  conversations: HarmonyConversation[];
}
export interface HarmonyConversation {
  name: string;
  effort?: string;
  tools?: boolean;
  messages: { role: string; content: string; reasoning?: string; call?: [string, object] }[];
  /** The prompt that openai-harmony writes. */
  text: string;
  /** Its token ids where schemas have no defaults, and it is given results and instructions as the template of gpt-oss writes them. */
  ids: number[];
}

const golden = new URL('../../../goldens/harmony.json', import.meta.url);
export const readGolden = (): HarmonyGolden => JSON.parse(readFileSync(golden, 'utf8')) as HarmonyGolden;

/** Text of each token as a parser gets it, with the special ones as marks. */
export function textsOf(tokens: readonly string[], isMarked = true): string[] {
  const decoder = new TextDecoder();
  const texts = tokens.map((token) => {
    if (!token.startsWith('<|')) return decoder.decode(Buffer.from(token, 'hex'), { stream: true });
    const known = HARMONY_TOKENS.includes(token as HarmonyToken);
    return isMarked && known ? markOf(token as HarmonyToken) : token;
  });
  const half = decoder.decode();
  return half === '' ? texts : [...texts, half];
}

export function parserOf(isMarked = true): HarmonyParser {
  return new HarmonyParser({ start: 'message', functions: new Set(['weather', 'find']), isMarked });
}

/** All parts of texts that come one by one. */
export function readTexts(texts: readonly string[], isMarked = true): AnswerPart[] {
  const parser = parserOf(isMarked);
  const parts = new PartList();
  for (const text of texts) parts.append(parser.push(text));
  parts.append(parser.end());
  return parts.take();
}
