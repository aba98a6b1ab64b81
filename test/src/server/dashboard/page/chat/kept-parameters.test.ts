import { describe, expect, it } from 'vitest';
import {
  MAX_MODELS,
  MAX_PRESETS,
  MAX_TEXT,
  ParameterStore,
} from '../../../../../../src/server/dashboard/page/chat/kept-parameters.js';

const kept = (system: string) => ({ system, stop: '', fields: { temperature: '0.3' } });

/** A store as the browser has one. */
function storage(first: Record<string, string> = {}) {
  const all = new Map(Object.entries(first));
  return {
    getItem: (key: string) => all.get(key) ?? null,
    setItem: (key: string, value: string) => void all.set(key, value),
  };
}

describe('presets', () => {
  it('are kept by their names over a reload, replaced and deleted', () => {
    const store = storage();
    const presets = new ParameterStore(store);
    expect(presets.savePreset({ ...kept('b'), name: 'two' })).toBeNull();
    presets.savePreset({ ...kept('a'), name: 'one' });
    presets.savePreset({ ...kept('c'), name: 'two' });
    const again = new ParameterStore(store);
    expect(again.presets).toEqual([
      { ...kept('a'), name: 'one' },
      { ...kept('c'), name: 'two' },
    ]);
    again.removePreset('one');
    expect(new ParameterStore(store).presets.map(({ name }) => name)).toEqual(['two']);
  });

  it('are bounded, and say why they are not kept', () => {
    const presets = new ParameterStore(storage());
    expect(presets.savePreset({ ...kept('x'.repeat(MAX_TEXT + 1)), name: 'long' })).toMatch(/at most 100000/);
    for (let i = 0; i < MAX_PRESETS; i++) presets.savePreset({ ...kept('a'), name: `${i}` });
    expect(presets.savePreset({ ...kept('a'), name: 'more' })).toMatch(/delete one first/);
    expect(presets.savePreset({ ...kept('b'), name: '7' })).toBeNull();
    expect(presets.presets).toHaveLength(MAX_PRESETS);
  });

  it('hold for the tab where the browser keeps nothing', () => {
    const full = {
      getItem: () => null,
      setItem: () => {
        throw new Error('full');
      },
    };
    for (const store of [null, full]) {
      const presets = new ParameterStore(store);
      expect(presets.savePreset({ ...kept('a'), name: 'one' })).toMatch(/this tab alone/);
      expect(presets.presets).toHaveLength(1);
    }
  });

  it.each(['no json', '7', '{"a": 1}', '[null, 3, {"name": 5}]', '[{"name": "x", "system": 1}]'])(
    'are not read from %j',
    (text) => {
      const presets = new ParameterStore(storage({ 'skein-presets': text, 'skein-parameters': text }));
      expect(presets.presets).toEqual([]);
      expect(presets.of('x')).toBeNull();
    },
  );
});

describe('parameters of models', () => {
  it('are remembered for each, the latest of them', () => {
    const store = storage();
    const parameters = new ParameterStore(store);
    for (let i = 0; i <= MAX_MODELS; i++) parameters.remember(`m${i}`, kept(`${i}`));
    parameters.remember('m1', kept('again'));
    parameters.remember('long', kept('x'.repeat(MAX_TEXT + 1)));
    const again = new ParameterStore(store);
    expect(again.of('m0')).toBeNull();
    expect(again.of('m1')).toMatchObject(kept('again'));
    expect(again.of('long')).toBeNull();
    expect(again.of('other')).toBeNull();
  });
});
