import { describe, expect, it } from 'vitest';
import { TraceDecisions } from '../../../../src/server/tracing/trace-settings.js';

const open = (start: Partial<{ isOn: boolean; rate: number; count: number }> = {}) =>
  new TraceDecisions({ isOn: true, rate: 1, count: -1, ...start });
const decided = (decisions: TraceDecisions, times: number, model?: string) =>
  Array.from({ length: times }, () => (decisions.decide('none', model) ? 1 : 0)).join('');

describe('which requests are traced', () => {
  it('is one of so many', () => {
    expect(decided(open(), 3)).toBe('111');
    expect(decided(open({ rate: 3 }), 7)).toBe('0010010');
    expect(decided(open({ rate: 0 }), 3)).toBe('000');
    expect(decided(open({ isOn: false }), 3)).toBe('000');
  });

  it('is what their clients have decided, beside the rate', () => {
    const decisions = open({ rate: 0, count: 0 });
    expect(decisions.decide('recorded')).toBe(true);
    expect(decisions.decide('dropped')).toBe(false);
    expect(open().decide('dropped')).toBe(false);
    expect(open({ isOn: false }).decide('recorded')).toBe(false);
  });

  it('ends when so many have been traced', () => {
    const decisions = open({ rate: 2, count: 2 });
    expect(decided(decisions, 8)).toBe('01010000');
    expect(decisions.settings()).toEqual({ isOn: true, rate: 2, count: 0 });
    decisions.change('', { count: 1 });
    expect(decided(decisions, 4)).toBe('0100');
  });

  it('may be other for a model, until that is given up', () => {
    const decisions = open({ rate: 2 });
    decisions.change('m', { rate: 1, count: 2 });
    expect(decided(decisions, 4, 'm')).toBe('1100');
    expect(decided(decisions, 2, 'other')).toBe('01');
    expect(decisions.settings('m')).toEqual({ isOn: true, rate: 1, count: 0 });
    decisions.change('', { isOn: false });
    expect(decisions.settings('m').isOn).toBe(false);
    decisions.change('m', { rate: null, count: null });
    decisions.change('', { isOn: null });
    expect(decisions.settings('m')).toEqual({ isOn: true, rate: 2, count: -1 });
    expect(decided(decisions, 4, 'm')).toBe('0101');
  });

  it("spends the server's count for a model that has none of its own", () => {
    const decisions = open({ count: 3 });
    decisions.change('m', { rate: 1 });
    expect(decided(decisions, 2, 'm')).toBe('11');
    expect(decided(decisions, 3)).toBe('100');
  });

  it('has settings of so many models at most', () => {
    const decisions = open();
    for (let i = 0; i < 1000; i++) decisions.change(`m${i}`, { rate: 5 });
    expect(() => decisions.change('one more', { rate: 5 })).toThrow(/1000 models have trace settings/);
    decisions.change('m1', { rate: 6 });
    decisions.change('m2', { rate: null });
    decisions.change('one more', { rate: 5 });
  });
});
