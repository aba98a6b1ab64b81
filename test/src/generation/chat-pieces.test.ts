import { describe, expect, it } from 'vitest';
import { type ChatPiece, CollectedCalls, chatPieces } from '../../../src/generation/chat-pieces.js';
import { THINK_MARKS } from '../../../src/generation/reasoning/reasoning-marks.js';
import { ReasoningParser } from '../../../src/generation/reasoning/reasoning-parser.js';
import type { TextPiece } from '../../../src/generation/text-generation.js';
import { HermesParser } from '../../../src/generation/tools/hermes-parser.js';

async function* inPieces(text: string, size: number): AsyncGenerator<TextPiece> {
  const fields = { tokens: [], logProbs: [], stopReason: null };
  for (let at = 0; at < text.length; at += size) {
    yield { ...fields, text: text.slice(at, at + size), finishReason: null };
  }
  yield { ...fields, text: '', finishReason: 'stop' };
}

const answer =
  '<think>Which place?</think>Let me see.\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>\n<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>';

describe('pieces of a chat', () => {
  it.each([1, 2, 7, 1000])('tell reasoning, text and calls apart, cut every %i characters', async (size) => {
    const plan = {
      createParser: () => new ReasoningParser({ start: 'maybe', marks: THINK_MARKS }, new HermesParser()),
      callIds: 'mistral',
      warnings: ['w'],
    } as const;
    const all: ChatPiece[] = [];
    for await (const piece of chatPieces(inPieces(answer, size), plan)) all.push(piece);
    expect(all.map(({ warnings }) => warnings)).toEqual([['w'], ...all.slice(1).map(() => undefined)]);
    const calls = new CollectedCalls();
    for (const { toolCalls = [] } of all) calls.add(toolCalls);
    expect(all.map(({ reasoning = '' }) => reasoning).join('')).toBe('Which place?');
    expect(
      all
        .map(({ text }) => text)
        .join('')
        .trim(),
    ).toBe('Let me see.');
    expect(calls.list.map(({ name, arguments: text }) => [name, JSON.parse(text)])).toEqual([
      ['f', { x: 1 }],
      ['g', {}],
    ]);
    for (const { id } of calls.list) expect(id).toMatch(/^\w{9}$/);
  });
});
