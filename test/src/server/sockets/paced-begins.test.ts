import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { PacedBegins } from '../../../../src/server/sockets/paced-begins.js';

/** A loop whose turns are taken by hand, and requests that take some milliseconds each to be begun. */
function loop({ costMs = 4 } = {}) {
  const begun: string[] = [];
  let nowMs = 0;
  let callbacks: (() => void)[] = [];
  const begins = new PacedBegins(
    (incoming) => {
      nowMs += costMs;
      begun.push(incoming.url!);
    },
    { now: () => nowMs, nextTurn: (callback) => void callbacks.push(callback) },
  );
  const take = (url: string, method = 'POST') => {
    const outgoing = { destroyed: false };
    begins.take({ method, url } as IncomingMessage, outgoing as ServerResponse);
    return outgoing;
  };
  return {
    begins,
    take,
    /** Takes a turn. @returns the requests begun since the last one */
    turn() {
      const due = callbacks;
      callbacks = [];
      for (const callback of due) callback();
      return begun.splice(0).join(' ');
    },
    begunNow: () => begun.splice(0).join(' '),
    isIdle: () => callbacks.length === 0,
  };
}

describe('requests', () => {
  it('are begun at once where they are few', () => {
    const { take, begunNow, turn, isIdle } = loop();
    for (const url of ['a', 'b', 'c']) take(url);
    expect(begunNow()).toBe('a b c');
    expect(turn()).toBe('');
    expect(isIdle()).toBe(true);
    take('d');
    expect(begunNow()).toBe('d');
  });

  it('of a crowd are begun over many turns, in their order, some in each', () => {
    const { take, turn, begins, isIdle } = loop();
    const urls = Array.from({ length: 100 }, (_, i) => String(i));
    for (const url of urls) take(url);
    const turns: string[][] = [];
    while (!isIdle()) turns.push(turn().split(' '));
    const begun = turns.filter(([first]) => first !== '');
    expect(begun.flat()).toEqual(urls);
    // Four milliseconds each, ten in a turn.
    expect(begun.slice(0, -1).every(({ length }) => length === 3)).toBe(true);
    expect(begins.waiting).toBe(0);
  });

  it('that come while others wait are begun behind them', () => {
    const { take, begunNow, turn } = loop({ costMs: 6 });
    for (const url of ['a', 'b', 'c']) take(url);
    expect(begunNow()).toBe('a b');
    turn();
    take('d');
    expect(begunNow()).toBe('');
    expect([turn(), turn()]).toEqual(['c', 'd']);
  });

  it('that take no time are begun in numbers', () => {
    const { take, turn, begunNow } = loop({ costMs: 0 });
    for (let i = 0; i < 1000; i++) take('a');
    expect(begunNow().split(' ')).toHaveLength(1000);
    expect(turn()).toBe('');
  });

  it('that only ask do not wait for the whole crowd, nor the crowd for them', () => {
    const { take, turn } = loop({ costMs: 6 });
    for (let i = 0; i < 50; i++) take('post');
    for (let i = 0; i < 50; i++) take('get', 'GET');
    turn();
    for (let i = 0; i < 20; i++) expect(turn()).toBe('get post');
  });

  it('whose connection is gone are left out', () => {
    const { take, turn, begins } = loop({ costMs: 6 });
    const taken = ['a', 'b', 'c', 'd', 'e', 'f'].map((url) => take(url));
    for (const gone of [2, 3, 4]) taken[gone]!.destroyed = true;
    turn();
    expect(turn()).toBe('f');
    expect(begins.waiting).toBe(0);
  });

  it('of which one takes long let everything else go first', () => {
    const { take, turn } = loop({ costMs: 100 });
    for (const url of ['a', 'b', 'c']) take(url);
    expect([turn(), turn(), turn(), turn()]).toEqual(['a', 'b', 'c', '']);
  });
});
