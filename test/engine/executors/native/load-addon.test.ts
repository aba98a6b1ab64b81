import { describe, expect, it } from 'vitest';
import type { NativeAddon } from '../../../../engine/executors/native/addon.js';
import {
  ADDON_ABI,
  AddonError,
  checkedAddon,
  loadAddon,
} from '../../../../engine/executors/native/load-addon.js';

describe('the native addon', () => {
  it('has the ABI of these sources and is loaded once', () => {
    expect(loadAddon().abi).toBe(ADDON_ABI);
    expect(loadAddon()).toBe(loadAddon());
  });

  // The first addons carried no number.
  it.each([
    [undefined, 1],
    [ADDON_ABI - 1, ADDON_ABI - 1],
    [ADDON_ABI + 1, ADDON_ABI + 1],
  ])('of ABI %s is refused, and what to do is said in one sentence', (abi, said) => {
    const stale = { ...loadAddon(), abi } as NativeAddon;
    const load = () => checkedAddon(() => stale);
    expect(load).toThrow(AddonError);
    expect(load).toThrow(`(ABI ${said}, expected ${ADDON_ABI})`);
    expect(load).toThrow(/^The native addon [^\n]*; run "npm rebuild skein" \(.*"npm run build:native"\)\.$/);
  });

  it('that does not load is named with the reason and what it needs', () => {
    const load = () =>
      checkedAddon(() => {
        throw new Error('No native build was found\nloaded from: somewhere');
      });
    expect(load).toThrow(AddonError);
    expect(load).toThrow(/^[^\n]*\(No native build was found\); install a C\+\+20 compiler[^\n]*$/);
  });
});
