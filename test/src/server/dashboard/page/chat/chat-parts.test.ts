import { describe, expect, it } from 'vitest';
import {
  AnswerTiming,
  milliseconds,
} from '../../../../../../src/server/dashboard/page/chat/answer-timing.js';
import { chatRequest, type Turn } from '../../../../../../src/server/dashboard/page/chat/conversation.js';
import { decodeEntities } from '../../../../../../src/server/dashboard/page/chat/entities.js';
import { safeLink } from '../../../../../../src/server/dashboard/page/chat/safe-link.js';

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

describe('the request of a conversation', () => {
  const turn = (question: string, text: string) => ({ question, answer: { text } }) as Turn;

  it('has what was said before, without questions that got no answer', () => {
    const turns = [turn('a', 'b'), turn('lost', ''), turn('c', '')];
    expect(chatRequest('m', turns, { system: 's', temperature: 0, seed: 4 })).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 's' },
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: 'c' },
      ],
      temperature: 0,
      seed: 4,
    });
    expect(chatRequest('m', [turn('a', '')], { system: '' }).messages).toEqual([
      { role: 'user', content: 'a' },
    ]);
  });
});
