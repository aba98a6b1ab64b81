import { describe, expect, it } from 'vitest';
import { difference, differenceOfBeginning } from '../../../tools/faults/client/compare.js';
import { fold, type Json, stable } from '../../../tools/faults/client/fold.js';

const event = (index: number, delta: object, finish: string | null = null) => ({
  id: 'x',
  object: 'chat.completion.chunk',
  created: 5,
  choices: [{ index, delta, finish_reason: finish }],
});
const logProbs = (...tokens: string[]) => ({ content: tokens.map((token) => ({ token, logprob: -1.5 })) });
const tool = (more: object) => ({ tool_calls: [{ index: 0, ...more }] });

describe('the events of a stream', () => {
  it('are the same answer however it was cut', () => {
    const cut = fold([
      event(1, { role: 'assistant', content: 'b' }),
      event(0, { content: 'a' }),
      event(1, { content: 'c' }, 'stop'),
    ]);
    const other = fold([
      event(0, { content: 'a' }),
      event(1, { role: 'assistant', content: 'bc' }),
      event(1, {}, 'stop'),
    ]);
    expect(difference(stable(cut), stable(other))).toBeNull();
    expect(cut).toMatchObject({
      choices: [
        { index: 0, delta: { content: 'a' } },
        { index: 1, delta: { role: 'assistant', content: 'bc' }, finish_reason: 'stop' },
      ],
    });
  });

  it('join arguments of tools, log-probs and the usage at the end', () => {
    const sum = fold([
      event(0, tool({ id: 'call', function: { name: 'row', arguments: '{"a"' } })),
      event(0, tool({ function: { arguments: ':1}' } })),
      { choices: [{ index: 0, logprobs: logProbs('a') }] },
      { choices: [{ index: 0, logprobs: logProbs('b', 'c') }] },
      { choices: [], usage: { completion_tokens: 3 } },
    ]);
    expect(sum).toMatchObject({
      choices: [
        {
          delta: tool({ function: { name: 'row', arguments: '{"a":1}' } }),
          logprobs: logProbs('a', 'b', 'c'),
        },
      ],
      usage: { completion_tokens: 3 },
    });
  });
});

describe('two answers', () => {
  const answer: Json = {
    choices: [{ index: 0, text: 'abc', logprobs: [0.1, 0.2] }],
    usage: { completion_tokens: 3 },
  };

  it('are compared bit for bit, and the first difference is named', () => {
    expect(difference(structuredClone(answer), answer)).toBeNull();
    const other = structuredClone(answer) as { choices: { text: string; logprobs: number[] }[] };
    other.choices[0]!.logprobs[1] = 0.2 + 2 ** -54;
    expect(difference(other as Json, answer)).toBe(
      'the answer.choices.0.logprobs.1 is 0.20000000000000007 in place of 0.2',
    );
    expect(difference({ choices: [] }, { choices: [], usage: null })).toBe(
      'the answer.usage is missing; it is null',
    );
    expect(difference({ a: 1, b: [2] }, { a: 1 })).toBe('the answer.b is [2], where nothing is expected');
    expect(difference([], {})).toBe('the answer is [] in place of {}');
  });

  it('have the same names, times and cached tokens left out', () => {
    const one = {
      id: 'a',
      created: 1,
      usage: { prompt_tokens: 4, prompt_tokens_details: { cached_tokens: 3 } },
    };
    expect(stable(one)).toEqual({ usage: { prompt_tokens: 4 } });
    expect(stable({ input_tokens: 4, cache_read_input_tokens: 12 })).toEqual({ input_tokens: 16 });
  });
});

describe('what came of a stream that broke', () => {
  const whole = stable(
    fold([
      event(0, { role: 'assistant', content: 'abc' }, 'stop'),
      event(1, { role: 'assistant', content: 'xyz' }, 'stop'),
    ]),
  );

  it('is a beginning of the whole', () => {
    for (const events of [
      [event(1, { role: 'assistant', content: 'xy' })],
      [event(0, { content: 'a' }), event(1, {})],
    ])
      expect(differenceOfBeginning(stable(fold(events)), whole)).toBeNull();
  });

  it('may have nothing else, and nothing twice', () => {
    expect(differenceOfBeginning(stable(fold([event(1, { content: 'xx' })])), whole)).toBe(
      'the beginning.choices.1.delta.content is "xx" in place of "xyz"',
    );
    expect(differenceOfBeginning(stable(fold([event(2, { content: 'x' })])), whole)).toMatch(
      /choices\.2 is .*nothing is expected/,
    );
  });
});
