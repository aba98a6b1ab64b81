import { expect, it } from 'vitest';
import type { EngineInfo } from '../../../callbacks/worker-messages.js';
import { blockLayout } from '../../../src/queue/model-card.js';

const COMPUTED = { fingerprint: 'f', executor: 'native', instructionSet: 'avx2', kvDtype: 'f32' };
const SIZES = { tokensPerBlock: 32, bytesPerBlock: 4096, bytesPerState: 0, maxAttentionWindow: null };

const layoutOf = (sizes: Partial<EngineInfo> = {}, computed: Partial<typeof COMPUTED> = {}) =>
  blockLayout(
    { info: { ...COMPUTED, ...computed } } as never,
    { ...SIZES, ...sizes } as never,
    { options: {} } as never,
    {} as never,
  );

it('a layout of blocks names all that decides their content, and the states behind them', () => {
  expect(layoutOf()).toBe(layoutOf());
  expect(layoutOf({ bytesPerBlock: null })).toBeNull();
  const layouts = [
    layoutOf(),
    layoutOf({ tokensPerBlock: 16 }),
    layoutOf({ bytesPerBlock: 2048 }),
    layoutOf({ maxAttentionWindow: 64 }),
    layoutOf({ bytesPerState: 256 }),
    layoutOf({ bytesPerState: 512 }),
    layoutOf({}, { kvDtype: 'bf16' }),
    layoutOf({}, { instructionSet: 'avx512' }),
    layoutOf({}, { executor: 'wasm' }),
    layoutOf({}, { fingerprint: 'g' }),
  ];
  expect(new Set(layouts).size).toBe(layouts.length);
});
