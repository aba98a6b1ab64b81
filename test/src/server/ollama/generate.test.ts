import { describe, expect, it } from 'vitest';
import { renderTemplate } from '../../../../src/server/ollama/prompt-template.js';
import { bytesOf, toyCodec } from '../../support/toy-codec.js';
import { say, type ToyOptions, toyServer } from '../../support/toy-server.js';
import { type Part, readLines } from './support.js';

function server(text: string, options: ToyOptions = {}) {
  const toy = toyServer(() => say(text), options);
  const post = (fields: object) => toy.post('/api/generate', { model: 'toy', stream: false, ...fields });
  const ask = async (fields: object) => (await (await post(fields)).json()) as Part;
  const prompt = (index = -1) => {
    const detokenizer = toyCodec.createDetokenizer({ skipSpecialTokens: true });
    return detokenizer.push(toy.engine.requests.at(index)!.promptTokens) + detokenizer.flush();
  };
  return { toy, post, ask, prompt };
}

describe('POST /api/generate', () => {
  it('answers a prompt through the chat template, with the tokens of both as context', async () => {
    const own = server('Hello');
    const answer = await own.ask({ prompt: 'Hi', system: 'Be kind.' });
    expect(own.prompt()).toBe('<system>Be kind.</><user>Hi</><assistant>');
    expect(answer).toMatchObject({ model: 'toy', response: 'Hello', done: true, done_reason: 'stop' });
    expect(answer.context).toEqual([...own.toy.engine.requests[0]!.promptTokens, ...bytesOf('Hello')]);
  });

  it('follows on where it is given a context, with one BOS', async () => {
    const own = server('Yes');
    const first = await own.ask({ prompt: 'A' });
    await own.ask({ prompt: 'B', context: first.context });
    expect(own.prompt()).toBe('<user>A</><assistant>Yes<user>B</><assistant>');
    const [bos] = (await toyCodec.encodeText('')) as number[];
    expect(bos).not.toBe(undefined);
    const tokens = Array.from(own.toy.engine.requests[1]!.promptTokens);
    expect(tokens.filter((token) => token === bos)).toHaveLength(1);
  });

  it('streams lines', async () => {
    const { toy } = server('ab');
    const lines = await readLines<Part>(await toy.post('/api/generate', { model: 'toy', prompt: 'x' }));
    expect(lines.map(({ response, done }) => [response, done])).toEqual([
      ['a', false],
      ['b', false],
      ['', true],
    ]);
    expect(lines.at(-1)!.context).toHaveLength(lines.at(-1)!.prompt_eval_count! + 2);
  });

  it('takes a raw prompt as it is, and gives no context', async () => {
    const own = server('x');
    const answer = await own.ask({ prompt: '<user>Hi', raw: true });
    expect(own.prompt()).toBe('<user>Hi');
    expect(answer.context).toBe(undefined);
  });

  it('takes a template of the request', async () => {
    const own = server('x');
    const template = '{{ if .System }}S:{{ .System }} {{ end }}P:{{ .Prompt }} A:{{ .Response }}</s>';
    await own.ask({ prompt: 'Hi', template });
    expect(own.prompt()).toBe('P:Hi A:');
    await own.ask({ prompt: 'Hi', system: 'Be kind.', template });
    expect(own.prompt()).toBe('S:Be kind. P:Hi A:');
  });

  it('only loads where there is no prompt', async () => {
    const own = server('x');
    expect(await own.ask({})).toMatchObject({ response: '', done: true, done_reason: 'load' });
    expect(await own.ask({ prompt: '', keep_alive: '0' })).toMatchObject({ done_reason: 'unload' });
    expect(own.toy.engine.requests).toEqual([]);
  });

  it.each([
    ['text to fill in', { prompt: 'a', suffix: 'b' }, '"toy" does not support insert'],
    ['raw with a system message', { prompt: 'a', raw: true, system: 's' }, /'raw' and 'system' exclude/],
    ['a picture', { prompt: 'a', images: ['aGk='] }, /'images\[0\]' has a picture, which is not taken/],
    ['tokens of another model', { prompt: 'a', context: [99_999] }, /context\[0\].*99999/],
    ['a context that is too long', { prompt: 'a', context: Array(300).fill(97) }, /'context' has 300 tokens/],
    [
      'a template of another language',
      { prompt: 'a', template: '{{ range .Messages }}' },
      /'template' has \{\{ range/,
    ],
    [
      'a template that repeats a long prompt',
      { prompt: 'a'.repeat(120_000), template: '{{ .Prompt }}'.repeat(5000) },
      /600000000 characters/,
    ],
    [
      'an action that is never closed',
      { prompt: 'a', template: `{{${' '.repeat(4000)}` },
      /character 1 without/,
    ],
  ])('refuses %s', async (_, fields, error) => {
    const response = await server('x').post(fields);
    expect(response.status).toBe(400);
    const body = (await response.json()) as Part;
    if (typeof error === 'string') expect(body.error).toBe(error);
    else expect(body.error).toMatch(error);
  });
});

describe('a template in the form of a Modelfile', () => {
  const values = { System: '', Prompt: 'p', Suffix: '' };

  it.each([
    ['text', 'text'],
    ['{{ .Prompt }}!', 'p!'],
    ['a {{- .Prompt -}} b', 'apb'],
    ['{{ if .System }}s{{ else }}n{{ end }}', 'n'],
    ['{{ if .Prompt }}{{ if .System }}s{{ else }}n{{ end }}y{{ end }}z', 'nyz'],
    ['{{/* a note */}}x{{ .Response }}y', 'x'],
    ['{{ if .Prompt }}a{{ .Response }}b{{ end }}c', 'a'],
    ['a\n\n{{-\n .Prompt\n -}}\n b', 'apb'],
    [`{{/* ${'a note '.repeat(100)}*/}}x`, 'x'],
  ])('%s is %s', (source, text) => {
    expect(renderTemplate(source, values, () => {})).toBe(text);
  });

  it.each([
    ['{{ end }}'],
    ['{{ else }}'],
    ['{{ if .Prompt }}'],
    ['{{ if and .System .Prompt }}x{{ end }}'],
    ['{{ .Tools }}'],
    ['{{}}'],
  ])('%s is refused', (source) => {
    expect(() => renderTemplate(source, values, () => {})).toThrow(/'template' has/);
  });

  it.each([
    ['white space', `{{${' '.repeat(60_000)}`, 1],
    ['a dash and lines', `a {{-${'\n'.repeat(60_000)}`, 3],
    ['more braces', '{{'.repeat(32_000), 1],
    ['dashes', `{{ .Prompt }}{{${' -'.repeat(30_000)}`, 14],
  ])('an action that is never closed is refused where it begins: %s', (_, source, place) => {
    expect(() => renderTemplate(source, values, () => {})).toThrow(
      `'template' has {{ at character ${place} without }} after it.`,
    );
  });

  it('reads each part of a template once', () => {
    let searches = 0;
    const source = Object.assign(new String('{{ .Prompt }}'.repeat(1000) + '{{ '.repeat(1000)), {
      indexOf: (text: string, from?: number) => {
        searches++;
        return String.prototype.indexOf.call(source, text, from);
      },
    });
    expect(() => renderTemplate(source as unknown as string, values, () => {})).toThrow(/without }}/);
    expect(searches).toBe(2002);
  });

  it.each([
    ['a template', 'x'.repeat(65_537), "'template' has 65537 characters; 65536 is the limit."],
    [
      'an action',
      `{{ ${'x'.repeat(257)} }}`,
      /at character 1 with 257 characters up to its }}; 256 is the limit/,
    ],
  ])('has a bound on the length of %s', (_, source, message) => {
    expect(() => renderTemplate(source, values, () => {})).toThrow(message);
  });

  it('tells the length of a prompt before it is made', () => {
    const long = { ...values, Prompt: 'p'.repeat(120_000) };
    let told = 0;
    const refuse = (units: number) => {
      told = units;
      throw new Error('too long');
    };
    expect(() => renderTemplate('{{.Prompt}}'.repeat(5000), long, refuse)).toThrow('too long');
    expect(told).toBe(600_000_000);
  });

  it('has a bound on ifs within each other', () => {
    expect(() => renderTemplate('{{ if .Prompt }}'.repeat(1000), values, () => {})).toThrow(
      /more than 16 ifs/,
    );
  });
});
