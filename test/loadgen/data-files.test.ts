import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readTrace } from '../../loadgen/arrivals/trace.js';
import { jsonlDataset } from '../../loadgen/data/jsonl.js';
import { temporaryFolder } from '../support/fresh-folders.js';

const folder = temporaryFolder('skein-loadgen');

let files = 0;
function file(...lines: (string | object)[]): string {
  const path = join(folder, `${files++}`);
  writeFileSync(
    path,
    lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
  );
  return path;
}

const jsonl = (path: string, more: object = {}) =>
  jsonlDataset(
    { file: path, outputTokens: { kind: 'fixed', tokens: 9 }, shuffle: false, multiTurn: false, ...more },
    0,
  );

describe('a file of JSON lines', () => {
  const talk = [
    { role: 'system', content: 's' },
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'a1' },
    { role: 'user', content: 'two' },
  ];

  it('has prompts, messages, conversations of ShareGPT and bodies', () => {
    const data = jsonl(
      file(
        { prompt: 'p', output_len: 3 },
        { messages: talk, max_tokens: 5 },
        {
          conversations: [
            { from: 'human', value: 'h' },
            { from: 'gpt', value: 'g' },
          ],
        },
        { body: { model: 'x', messages: [], temperature: 0 } },
      ),
    );
    expect(data.size).toBe(4);
    expect(data.sample(0).turns).toEqual([{ prompt: 'p', maxTokens: 3 }]);
    expect(data.sample(1).turns).toEqual([{ prompt: 'two', maxTokens: 5, history: talk.slice(0, 3) }]);
    expect(data.sample(2).turns).toEqual([{ prompt: 'h', maxTokens: 9, history: [] }]);
    expect(data.sample(3).turns[0]!.fields).toEqual({ messages: [], temperature: 0 });
  });

  it('gives a turn for each message of the user where that is asked for', () => {
    const { turns } = jsonl(file({ messages: talk }), { multiTurn: true }).sample(0);
    expect(turns.map(({ prompt, history }) => [prompt, history!.length])).toEqual([
      ['one', 1],
      ['two', 0],
    ]);
  });

  it('is refused with its line', () => {
    expect(() => jsonl(file({ prompt: 'a' }, '{'))).toThrow(/line 2 is not JSON/);
    expect(() => jsonl(file({ text: 'a' }))).toThrow(/line 1: expected an object with prompt, messages/);
    expect(() => jsonl(file({ messages: [{ role: 'assistant', content: 'a' }] }))).toThrow(
      /no message is the user's/,
    );
    expect(() => jsonl(file(''))).toThrow(/has no lines/);
    expect(() => jsonl(join(folder, 'none'))).toThrow(/cannot be read/);
  });
});

describe('a trace', () => {
  it("of Mooncake's form has milliseconds, lengths, and prompts that share their blocks", () => {
    const { times, dataset } = readTrace(
      file(
        { timestamp: 1000, input_length: 1500, output_length: 5, hash_ids: [1, 2, 3] },
        { timestamp: 4000, input_length: 600, output_length: 7, hash_ids: [1, 9] },
      ),
      0,
    );
    expect(times).toEqual([0, 3]);
    const [a, b] = [0, 1].map((i) => dataset!.sample(i).turns[0]!);
    expect([a!.promptTokens, a!.maxTokens, b!.maxTokens]).toEqual([1500, 5, 7]);
    const [x, y] = [a!.prompt.split(' '), b!.prompt.split(' ')];
    expect([x.length, y.length]).toEqual([1500, 600]);
    expect(x.slice(0, 512)).toEqual(y.slice(0, 512));
    expect(x.slice(512, 600)).not.toEqual(y.slice(512, 600));
  });

  it("of Azure's and BurstGPT's forms is a table with a header", () => {
    const azure = readTrace(
      file(
        'TIMESTAMP,ContextTokens,GeneratedTokens',
        '2023-11-16 18:15:46.680,374,44',
        '2023-11-16 18:15:48.180,396,109',
      ),
      0,
    );
    expect(azure.times[1]).toBeCloseTo(1.5, 3);
    expect(azure.dataset!.sample(1).turns[0]).toMatchObject({ promptTokens: 396, maxTokens: 109 });
    const burst = readTrace(
      file('Timestamp,Model,Request tokens,Response tokens', '45,ChatGPT,20,7', '5,GPT-4,3,0'),
      0,
    );
    // In the order of time.
    expect(burst.times).toEqual([0, 40]);
    expect(burst.dataset!.sample(0).turns[0]).toMatchObject({ promptTokens: 3, maxTokens: 1 });
  });

  it("as CSV may quote: commas, quotes and ends of lines in a cell are the prompt's", () => {
    const { times, dataset } = readTrace(
      file(
        'time,"prompt",output_tokens',
        '0,"one, two, ""three""",4',
        '2.5,"first line\nsecond, line",5\r',
        '',
        '3,plain,6',
      ),
      0,
    );
    expect(times).toEqual([0, 2.5, 3]);
    expect([0, 1, 2].map((i) => dataset!.sample(i).turns[0])).toEqual([
      { prompt: 'one, two, "three"', maxTokens: 4 },
      { prompt: 'first line\nsecond, line', maxTokens: 5 },
      { prompt: 'plain', maxTokens: 6 },
    ]);
  });

  it('that is no CSV is refused with its line', () => {
    expect(() => readTrace(file('time,prompt', '1,"open'), 0)).toThrow(
      /^The trace \S+ is no CSV: .*opening quote at line 2/,
    );
    expect(() => readTrace(file('time,prompt', '1,a', '2,b,c'), 0)).toThrow(/is no CSV: .*on line 3/);
    expect(() => readTrace(file('time,prompt', '1,"a\nb"', 'soon,c'), 0)).toThrow(
      /line 4: expected a time .* found "soon"/,
    );
    expect(() => readTrace(file('time,prompt'), 0)).toThrow(/has no lines with a time/);
  });

  it('without lengths has times only, and is refused with its line where it has none', () => {
    expect(readTrace(file({ time: 0.5 }, { time: 2 }), 0)).toMatchObject({ times: [0, 1.5], dataset: null });
    expect(() => readTrace(file({ time: 1 }, { input_length: 3 }), 0)).toThrow(/line 2: expected a time/);
    expect(() => readTrace(file('TIMESTAMP,ContextTokens', '1,many'), 0)).toThrow(
      /line 2: "many" is no number/,
    );
  });
});
