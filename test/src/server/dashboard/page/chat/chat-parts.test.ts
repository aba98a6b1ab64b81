import { describe, expect, it } from 'vitest';
import {
  AnswerTiming,
  milliseconds,
  thoughtWords,
} from '../../../../../../src/server/dashboard/page/chat/answer-timing.js';
import { contextWords } from '../../../../../../src/server/dashboard/page/chat/context-meter.js';
import { chatRequest } from '../../../../../../src/server/dashboard/page/chat/conversation.js';
import { safeLink } from '../../../../../../src/server/dashboard/page/chat/markdown/markdown-nodes.js';
import { partingOf, promptWords } from '../../../../../../src/server/dashboard/page/chat/prompt-figures.js';
import type { StoredMessage } from '../../../../../../src/server/dashboard/page/chat/stored-conversation.js';
import { tokenWords } from '../../../../../../src/server/dashboard/page/chat/tokens-view.js';
import { responseRequest } from '../../../../../../src/server/dashboard/page/chat/tools/response-request.js';
import { factsOf } from '../../../../../../src/server/dashboard/page/model-facts.js';
import { decodeEntities } from '../../../../../../src/texts/entities.js';

describe('links of an answer', () => {
  it('lead to other places by schemes that run nothing', () => {
    expect(safeLink('https://a.example/b?c#d')).toBe('https://a.example/b?c#d');
    expect(safeLink('mailto:goose@a.example')).toBe('mailto:goose@a.example');
  });

  it.each([
    'javascript:alert(1)',
    ' \tjava\nscript:alert(1)',
    'JAVASCRIPT:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://a.example/1',
    '/v1/cache/reset',
    '//elsewhere.example',
    '#here',
    'https://',
    '',
  ])('do not lead to %j', (href) => {
    expect(safeLink(href)).toBeNull();
  });
});

describe('entities', () => {
  it('become the characters they stand for, once', () => {
    expect(decodeEntities('a &lt; b &amp;&amp; c &#x41;&#66; &nbsp;')).toBe('a < b && c AB \u00a0');
    expect(decodeEntities('&amp;lt;')).toBe('&lt;');
  });

  it('stay where they are none', () => {
    expect(decodeEntities('AT&T; &unknown; &constructor; & &;')).toBe('AT&T; &unknown; &constructor; & &;');
    expect(decodeEntities('&#0; &#xd800; &#9999999;')).toBe('\ufffd \ufffd \ufffd');
  });
});

describe('what an answer took', () => {
  it('is the time to its first text, and the pace of the tokens after it', () => {
    const timing = new AnswerTiming(1000);
    expect([timing.firstTokenMs, timing.tokensPerSecond]).toEqual([null, null]);
    for (const ms of [1200, 1300, 1400]) timing.notePiece(ms);
    expect(timing.firstTokenMs).toBe(200);
    expect(timing.tokensPerSecond).toBe(10);
    expect([timing.tokens, timing.isCounted]).toEqual([3, false]);
    // Several tokens came in a piece.
    timing.noteTokens(21);
    expect(timing.tokensPerSecond).toBe(100);
    expect([timing.tokens, timing.isCounted]).toEqual([21, true]);
  });

  it('is of the whole where all came at once', () => {
    const timing = new AnswerTiming(0);
    timing.notePiece(100);
    timing.notePiece(100.1);
    timing.noteTokens(8);
    expect(timing.tokensPerSecond).toBeCloseTo(8 / 0.1001, 3);
  });

  it('has the time of its reasoning, up to the first text', () => {
    const timing = new AnswerTiming(0);
    expect([timing.thoughtMs, timing.isThinking]).toEqual([null, false]);
    timing.notePiece(100, true);
    timing.notePiece(1100, true);
    expect([timing.thoughtMs, timing.isThinking]).toEqual([1000, true]);
    timing.notePiece(3300);
    timing.notePiece(9000);
    expect([timing.thoughtMs, timing.isThinking]).toEqual([3200, false]);
    expect(thoughtWords(3200)).toBe('Thought for 3.2 s');
    expect(thoughtWords(null)).toBe('Reasoning');
  });

  it('has the probability of a token, and what could have been in its place', () => {
    const top_logprobs = [
      { token: ' goose', logprob: Math.log(0.5) },
      { token: ' duck', logprob: Math.log(0.25) },
    ];
    expect(tokenWords({ token: ' goose', logprob: Math.log(0.5), top_logprobs })).toBe(
      '" goose" 50.0 %, log-prob -0.69; in its place: " duck" 25.0 %',
    );
    expect(tokenWords({ token: 'x', logprob: 0, top_logprobs: [] })).toBe('"x" 100.0 %, log-prob 0.00');
  });

  it('is written as finely as it means something', () => {
    expect([3.14, 42.4, 999.4, 1234, 12_345].map(milliseconds)).toEqual([
      '3.1 ms',
      '42 ms',
      '999 ms',
      '1.23 s',
      '12.3 s',
    ]);
  });
});

describe('what is said of a prompt', () => {
  it('is its length, what the cache had of it, and where it parts from an earlier one', () => {
    expect(promptWords({})).toBe('');
    expect(promptWords({ tokens: 1936, cached: 10 })).toBe('Prompt of 1,936 tokens, 10 from the cache.');
    const parting = partingOf('at=10; tokens=1936; repeated=1926')!;
    expect(parting).toEqual({ at: 10, repeated: 1926 });
    expect(promptWords({ tokens: 1936, cached: 10, parting })).toBe(
      'Prompt of 1,936 tokens, 10 from the cache. It differs from an earlier prompt after 10 tokens: about 1,926 are computed again.',
    );
    for (const header of [null, '', 'at=x']) expect(partingOf(header)).toBeNull();
  });
});

describe('the request of a conversation', () => {
  const model = { id: 'm', sees: false };
  const path = (...texts: string[]): StoredMessage[] =>
    texts.map((text, index) => ({
      ...{ id: `${index}`, parent: index === 0 ? null : `${index - 1}`, text },
      role: index % 2 === 0 ? 'user' : 'assistant',
    }));
  const parameters = { system: '', stop: [], numbers: {}, wantsLogProbs: false };

  it('has what was said before, without questions that got no answer', () => {
    const given = { ...parameters, system: 's', stop: ['x'], numbers: { temperature: 0, seed: 4 } };
    expect(chatRequest(model, path('a', 'b', 'lost', '', 'c'), given)).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: 'c' },
      ],
      temperature: 0,
      seed: 4,
      stop: ['x'],
    });
    expect(chatRequest(model, path('a'), parameters)).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'a' }],
    });
    const wanted = chatRequest(model, path('a'), { ...parameters, wantsLogProbs: true });
    expect(wanted).toMatchObject({ logprobs: true, top_logprobs: 5 });
  });

  it('has calls of tools that were made, and asks for the tools of servers', () => {
    const call = { server: 's', name: 'n', arguments: '{}', output: '5', error: null, isDenied: false };
    const denied = { ...call, output: null, isDenied: true };
    const [question, answer] = path('a', 'b');
    const said = [
      question!,
      { ...answer!, calls: [call, denied, { ...denied, isDenied: false }] },
      { ...question!, text: 'c' },
    ];
    const given = { ...parameters, system: 's', numbers: { max_tokens: 5, top_p: 1 }, wantsLogProbs: true };
    expect(responseRequest(model, said, given, ['s'])).toEqual({
      model: 'm',
      instructions: 's',
      input: [
        { type: 'message', role: 'user', content: 'a' },
        { type: 'mcp_call', server_label: 's', name: 'n', arguments: '{}', output: '5', error: null },
        { type: 'message', role: 'assistant', content: 'b' },
        { type: 'message', role: 'user', content: 'c' },
      ],
      store: false,
      max_output_tokens: 5,
      top_p: 1,
      include: ['message.output_text.logprobs'],
      top_logprobs: 5,
      tools: [{ type: 'mcp', server_label: 's', require_approval: 'always' }],
    });
  });
});

describe('the context', () => {
  it('is told in tokens and as a share, and when it is nearly full', () => {
    expect(contextWords(1234, 8192)).toBe('Context: 1,234 of 8,192 tokens (15 %)');
    expect(contextWords(89, 100)).not.toContain('full');
    expect(contextWords(90, 100)).toMatch(/\(90 %\)\. Nearly full: begin a new chat$/);
    expect(contextWords(120, 100)).toContain('(100 %)');
  });
});

describe('the facts of a model', () => {
  const model = { id: 'goose', created: 0, max_model_len: 2048, parent: null };

  it('are what is known, in words', () => {
    expect(factsOf({ model, blocks: null }, {})).toEqual([
      ['Name', 'goose'],
      ['Context', '2,048 tokens'],
    ]);
    const shown = {
      details: {
        family: 'llama',
        parameter_size: '134.5M',
        quantization_level: 'BF16',
        format: 'safetensors',
      },
      model_info: {
        'llama.block_count': 30,
        'llama.attention.head_count_kv': 3,
        'general.architecture': 'x',
      },
      capabilities: ['completion', 'tools'],
    };
    const blocks = { count: 10, tokensPerBlock: 32, runs: [] };
    expect(Object.fromEntries(factsOf({ model: { ...model, parent: 'egg' }, blocks }, shown))).toEqual({
      Name: 'goose',
      'Adapter of': 'egg',
      Architecture: 'llama',
      Parameters: '134.5M',
      Weights: 'BF16, safetensors',
      Layers: '30',
      'KV heads': '3',
      Context: '2,048 tokens',
      'KV cache': '320 tokens',
      'Can use': 'tools',
    });
  });
});
