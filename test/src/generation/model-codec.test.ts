import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
// The codec's threads run compiled files, so this test takes the compiled modules (npm run build:ts).
import { ChatTemplateError } from '../../../dist/models/chat-template.js';
import { TokenizerError } from '../../../dist/models/tokenizer/index.js';
import { ModelCodec } from '../../../dist/src/generation/model-codec.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';

let codec: ModelCodec;
beforeAll(async () => {
  codec = await ModelCodec.open(tinyModelPath('gqa'));
});
afterAll(() => codec?.close());

const decoder = new TextDecoder();

/** Text of tokens, byte by byte. */
function spell(tokens: Iterable<number>): string {
  const bytes = Array.from(tokens, (token) => Array.from(codec.tokenBytes(token))).flat();
  return decoder.decode(Uint8Array.from(bytes));
}

describe('ModelCodec', () => {
  it('turns text into tokens and back, piece by piece', async () => {
    const text = 'Geese fly: 雁が飛ぶ 🪿, naïvely';
    const tokens = Array.from(await codec.encodeText(text));
    expect(spell(tokens)).toBe(text);
    const detokenizer = codec.createDetokenizer({ skipSpecialTokens: true });
    const pieces = tokens.map((token) => detokenizer.push([token]));
    expect(pieces.join('') + detokenizer.flush()).toBe(text);
    for (const piece of pieces) expect(piece).not.toContain('\ufffd');
  });

  it('takes special tokens of a prompt for tokens, those of a message for text', async () => {
    const [token, ...more] = await codec.encodeText('<|im_end|>');
    expect(more).toEqual([]);
    const chat = Array.from(await codec.encodeChat([{ role: 'user', content: 'a<|im_end|>b' }], {}));
    expect(spell(chat)).toBe('<|im_start|>user\na<|im_end|>b<|im_end|>\n<|im_start|>assistant\n');
    expect(chat.filter((one) => one === token)).toHaveLength(1);
  });

  it('leaves out special tokens, or shows them', async () => {
    const tokens = await codec.encodeText('a<|im_end|>b');
    const shown = (skipSpecialTokens: boolean) => {
      const detokenizer = codec.createDetokenizer({ skipSpecialTokens });
      return detokenizer.push(tokens) + detokenizer.flush();
    };
    expect(shown(true)).toBe('ab');
    expect(shown(false)).toBe('a<|im_end|>b');
  });

  it('ends the prompt with the header of an answer, without it, or inside the last message', async () => {
    const messages = [{ role: 'assistant', content: 'Geese' }];
    const rendered = async (options: object) => spell(await codec.encodeChat(messages, options));
    expect(await rendered({})).toMatch(/<\|im_start\|>assistant\n$/);
    expect(await rendered({ addGenerationPrompt: false })).toMatch(/Geese<\|im_end\|>\n$/);
    const open = { addGenerationPrompt: false, continueFinalMessage: true };
    expect(await rendered(open)).toMatch(/assistant\nGeese$/);
  });

  it('refuses a directory without a tokenizer, and a template that does not parse', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'skein-codec-'));
    try {
      await expect(ModelCodec.open(folder)).rejects.toThrow(/tokenizer\.json/);
      writeFileSync(join(folder, 'tokenizer.json'), '{');
      await expect(ModelCodec.open(folder)).rejects.toBeInstanceOf(TokenizerError);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    await expect((async () => codec.encodeChat([], { variables: { messages: 3 } }))()).rejects.toBeInstanceOf(
      ChatTemplateError,
    );
  });

  it('knows how much text a token stands for at most, and refuses chats that are longer without encoding them', async () => {
    const most = codec.unitsPerToken;
    for (const text of ['', 'hello', ' '.repeat(500), '<|endoftext|>'.repeat(50), '雁🪿'.repeat(99)]) {
      const tokens = await codec.encodeText(text);
      expect(tokens.length * most).toBeGreaterThanOrEqual(text.length);
    }
    // No entry of the vocabulary is longer than the special tokens.
    expect(most).toBe('<|endoftext|>'.length);
    const message = { role: 'user', content: 'x'.repeat(10_000_000) };
    const limit = { maxTokens: 100, contextTokens: 101 };
    const started = (async () => codec.encodeChat([message], limit))();
    await expect(started).rejects.toMatchObject({
      apiCode: 'context_length_exceeded',
      param: 'messages',
      message: expect.stringMatching(
        /maximum context length is 101 tokens\. However, the prompt has at least 769\d{3} tokens/,
      ),
    });
    expect(
      (await codec.encodeChat([{ role: 'user', content: 'x' }], { maxTokens: 100 })).length,
    ).toBeLessThan(100);
  });
});
