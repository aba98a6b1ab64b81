import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseWritten } from '../../../dist/base/written-json.js';
import { GuideError } from '../../../dist/engine/guided/grammar.js';
// The threads run compiled files, so this test takes the compiled modules (npm run build:ts).
import { ChatTemplate } from '../../../dist/models/chat-template.js';
import { readTokenizerFiles, Tokenizer, TokenizerPool } from '../../../dist/models/tokenizer/index.js';
import { checkGuideHere } from '../../../dist/src/generation/guide-checks.js';
import { guideOf } from '../../../dist/src/generation/guided.js';
import { ModelCodec } from '../../../dist/src/generation/model-codec.js';
import { promptOf } from '../../../dist/src/generation/prompt/chat-prompt.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';

const directory = tinyModelPath('gqa');
let codec: ModelCodec;
let template: ChatTemplate;
let tokenizer: Tokenizer;
beforeAll(async () => {
  codec = await ModelCodec.open(directory);
  const files = await readTokenizerFiles(directory);
  tokenizer = new Tokenizer(files);
  template = new ChatTemplate(files.chatTemplate, tokenizer);
});
afterAll(() => codec?.close());

/** Turns that prove that another thread did the work: it gives hundreds, work in this thread one or two. */
const MANY = 50;

/** Number of turns of this thread's event loop until the work was done. It stops at MANY, since an idle loop spins. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const count = () => {
    if (isDone || turns >= MANY) return;
    turns++;
    setImmediate(count);
  };
  setImmediate(count);
  await work().catch(() => {});
  isDone = true;
  return turns;
}

const conversation = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    role: i % 2 === 0 ? 'user' : 'assistant',
    content: `Turn ${i}: <|im_end|> is text.`,
  }));

it('a template of a request is given the numbers of variables as they were written', async () => {
  const variables = parseWritten('{"x": 1.0, "y": [12345678901234567890]}') as Record<string, unknown>;
  const messages = [{ role: 'user', content: 'hi' }];
  const tokens = await codec.encodeChat(messages, { template: '{{ x }} {{ y }}', variables });
  expect(tokenizer.decode(tokens)).toBe('1.0 [12345678901234567890]');
});

describe('a long chat', () => {
  it.each([
    ['many messages', conversation(2000)],
    ['a message of control tokens', [{ role: 'user', content: '<|im_start|>user '.repeat(8000) }]],
  ])('of %s is rendered and encoded in a thread, to the same tokens', async (_, messages) => {
    let tokens: Int32Array | null = null;
    const turns = await turnsDuring(async () => {
      tokens = Int32Array.from(await codec.encodeChat(messages, {}));
    });
    expect(turns).toBe(MANY);
    const { segments } = template.render(messages, { addGenerationPrompt: true });
    // A difference of two long lists would take minutes to be written.
    expect(Buffer.from(tokens!.buffer).equals(Buffer.from(tokenizer.encodeSegments(segments).buffer))).toBe(
      true,
    );
  });

  it('with functions has the same tokens, also where they come again', async () => {
    const source =
      '{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{{ messages[0].content }}<|im_end|>';
    const files = { ...(await readTokenizerFiles(directory)), chatTemplate: source };
    const pool = new TokenizerPool(tokenizer, { files });
    const written = new ChatTemplate(source, tokenizer);
    const functions = (description: string) =>
      Array.from({ length: 60 }, (_, i) => ({ type: 'function', function: { name: `f${i}`, description } }));
    try {
      for (const content of ['Hi', 'Hi', 'And <|im_end|>']) {
        for (const tools of [
          functions('It acts.'),
          functions('It ends <|im_end|>.'),
          functions('It acts.'),
        ]) {
          const messages = [{ role: 'user', content }];
          const { segments } = written.render(messages, { tools });
          expect(await pool.encodeChat(written, messages, { tools })).toEqual(
            new Tokenizer(files).encodeSegments(segments),
          );
        }
      }
    } finally {
      await pool.close();
    }
  });

  it('is refused in the same words', async () => {
    const wrong = [...conversation(2000), { role: 'user', content: [{ type: 'image_url' }] }];
    const words = /messages\[2000\]\.content: a part of type "image_url" is not text/;
    expect(() => template.render(wrong)).toThrow(words);
    const refused = codec.encodeChat(wrong, {});
    await expect(refused).rejects.toThrow(words);
    await expect(refused).rejects.toHaveProperty('name', 'ChatTemplateError');
  });

  it('that has too many tokens for certain is refused with the numbers', async () => {
    const refused = codec.encodeChat(conversation(2000), { maxTokens: 10 });
    await expect(refused).rejects.toThrow(
      /maximum context length is 10 tokens\. However, the prompt has at least \d+ tokens/,
    );
  });

  it('is dropped when nobody wants it any more', async () => {
    const abort = new AbortController();
    const pending = codec.encodeChat(conversation(2000), { signal: abort.signal });
    const reason = new Error('The client left.');
    abort.abort(reason);
    await expect(pending).rejects.toBe(reason);
    expect(await codec.encodeText('And on it goes.')).toEqual(tokenizer.encode('And on it goes.'));
  });
});

describe('a template that works long on a short chat', () => {
  const LONG =
    '{% for i in range(300) %}{% for j in range(300) %}{% endfor %}{% endfor %}{{ messages[0].content }}';
  const ENDLESS = LONG.replaceAll('300', '90000');

  async function render(source: string, timeLimitMs: number) {
    const files = await readTokenizerFiles(directory);
    const pool = new TokenizerPool(tokenizer, { files: { ...files, chatTemplate: source } }, { timeLimitMs });
    try {
      const own = new ChatTemplate(source, tokenizer);
      let tokens: unknown;
      let error: unknown = null;
      const turns = await turnsDuring(async () => {
        try {
          tokens = await pool.encodeChat(own, [{ role: 'user', content: 'geese' }], {});
        } catch (thrown) {
          error = thrown;
        }
      });
      return { tokens, error, turns };
    } finally {
      await pool.close();
    }
  }

  it('is rendered in a thread', async () => {
    const { tokens, error, turns } = await render(LONG, 60_000);
    expect(error).toBeNull();
    expect(tokens).toEqual(tokenizer.encode('geese', { addSpecialTokens: false }));
    expect(turns).toBe(MANY);
  });

  it('is given up after so many steps, or when its time is over', async () => {
    const { error, turns } = await render(ENDLESS, 60_000);
    expect(String(error)).toMatch(/took more than 500000 steps/);
    expect(turns).toBe(MANY);
    expect(String((await render(ENDLESS, 1)).error)).toMatch(/PromptTimeError: .*took more than 0.001 s/);
  });
});

describe("a template of a request's own", () => {
  it.each([
    ["{{ raise_exception('no') }}", /^The chat template refused the messages: no/],
    ['{{ ', /^The chat template cannot be parsed: /],
  ])('that fails is named as the field at fault: %s', async (template, message) => {
    const asked = promptOf({ codec }, { messages: conversation(1), template }, undefined);
    await expect(asked).rejects.toMatchObject({ name: 'InvalidRequestError', param: 'chat_template' });
    await expect(asked).rejects.toThrow(message);
  });

  it('that refuses a conversation gets it in another form, however long it is', async () => {
    const template =
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('none') }}{% endif %}{{ m.content }}{% endfor %}";
    for (const turns of [1, 2000]) {
      const messages = [{ role: 'system', content: 'be' }, ...conversation(turns)];
      const asked = { addGenerationPrompt: false };
      const { promptTokens } = await promptOf({ codec }, { ...asked, messages, template }, undefined);
      const [first, ...rest] = conversation(turns);
      const joined = [{ ...first, content: `be\n\n${first!.content}` }, ...rest];
      expect(promptTokens).toEqual(await codec.encodeChat(joined as typeof messages, { ...asked, template }));
    }
  });
});

describe('a long guide', () => {
  const schema = (count: number) => ({
    allOf: Array.from({ length: count }, (_, i) => ({
      type: 'object',
      properties: { [`a${i}`]: { type: 'string' } },
    })),
  });

  it('is checked in a thread', async () => {
    const turns = await turnsDuring(() => guideOf({ json: schema(400) }, 'p', codec));
    expect(turns).toBe(MANY);
  });

  it('is refused as a short one is', async () => {
    const short = guideOf({ regex: 'a{2,1}' }, 'guided_regex', codec);
    await expect(short).rejects.toThrow(/is refused at place \d+/);
    const long = guideOf({ regex: `${'b'.repeat(1000)}a{2,1}` }, 'guided_regex', codec);
    await expect(long).rejects.toMatchObject({ param: 'guided_regex', apiCode: 'invalid_guide' });
    await expect(long).rejects.toThrow(/is refused at place \d+/);
  });

  it('of more parts than can be followed is the fault of who sent it', () => {
    const optional = Array.from({ length: 6000 }, (_, i) => [`p${i}`, { type: 'string', maxLength: 9 }]);
    const guide = JSON.stringify({ type: 'object', properties: Object.fromEntries(optional) });
    let thrown: unknown = new GuideError('none');
    try {
      checkGuideHere({ type: 'json_schema', guide });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(GuideError);
  });
});
