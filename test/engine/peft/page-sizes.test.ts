import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_ADAPTER_SLOTS } from '../../../callbacks/options/peft-cache-options.js';
import {
  adapterRoom,
  cachePages,
  hostCacheBytes,
  pageSizes,
  pagesOfAdapter,
  roomOf,
  slotOptions,
} from '../../../engine/peft/page-sizes.js';
import { adapterOf } from '../../../models/adapters/adapter-weights.js';
import { baseModules } from '../../../models/adapters/base-modules.js';
import { TINY_BASE } from '../../support/tiny-adapter.js';

const { shapes, names } = baseModules(TINY_BASE);
const OWN = [...new Set(names.values())];

/** An adapter of this rank on these modules of all layers. */
function adapter(rank: number, modules = OWN, layers = TINY_BASE.numLayers) {
  return adapterOf(
    modules.flatMap((module) =>
      Array.from({ length: layers }, (_, layer) => {
        const shape = shapes.get(module)!;
        return {
          layer,
          module,
          rank,
          a: new Float32Array(rank * shape.in),
          b: new Float32Array(rank * shape.out),
        };
      }),
    ),
    null,
  );
}

describe('pages', () => {
  it('hold exactly an adapter of the optimal size, whatever that is', () => {
    for (const optimalAdapterSize of [1, 2, 3, 8, 16, 33]) {
      const sizes = pageSizes(TINY_BASE, { optimalAdapterSize, maxAdapterSize: 1 });
      expect(pagesOfAdapter(adapter(optimalAdapterSize), sizes)).toBe(1);
      expect(pagesOfAdapter(adapter(2 * optimalAdapterSize), sizes)).toBeGreaterThan(1);
    }
  });

  it('count ranks as they are computed: up to whole vectors', () => {
    const sizes = pageSizes(TINY_BASE, { optimalAdapterSize: 1, maxAdapterSize: 64 }, 16);
    const pagesOf = (rank: number) => pagesOfAdapter(adapter(rank), sizes);
    expect(pagesOf(16)).toBeLessThanOrEqual(16);
    expect(pagesOf(1)).toBeGreaterThan(1);
    for (const rank of [3, 16, 17, 40]) {
      const packed = adapter(rank).moduleLayers.reduce((sum, { a, b }) => {
        return sum + (a.byteLength / rank) * Math.ceil(rank / 16) * 16 + b.byteLength;
      }, 0);
      expect(pagesOf(rank) * sizes.bytesPerPage).toBeGreaterThanOrEqual(packed);
    }
    for (const module of shapes.keys()) expect(pagesOfAdapter(adapter(63, [module], 1), sizes)).toBe(1);
  });

  it('hold any module-layer of the greatest rank, stacked ones too', () => {
    const sizes = pageSizes(TINY_BASE, { optimalAdapterSize: 1, maxAdapterSize: 64 });
    for (const module of shapes.keys()) expect(pagesOfAdapter(adapter(64, [module], 1), sizes)).toBe(1);
    expect(sizes.maxAdapterSize).toBe(64);
  });

  it('have room for the bytes that they stand for', () => {
    const parts = fc.record({
      optimalAdapterSize: fc.integer({ min: 1, max: 16 }),
      maxAdapterSize: fc.integer({ min: 1, max: 32 }),
      share: fc.integer({ min: 1, max: 100 }),
      modules: fc.subarray(OWN, { minLength: 1 }),
    });
    fc.assert(
      fc.property(parts, ({ optimalAdapterSize, maxAdapterSize, share, modules }) => {
        const sizes = pageSizes(TINY_BASE, { optimalAdapterSize, maxAdapterSize });
        const weights = adapter(Math.ceil((maxAdapterSize * share) / 100), modules);
        const bytes = weights.moduleLayers.reduce((sum, { a, b }) => sum + a.byteLength + b.byteLength, 0);
        const pages = pagesOfAdapter(weights, sizes);
        expect(pages * sizes.bytesPerPage).toBeGreaterThanOrEqual(bytes);
        expect(pages).toBeLessThanOrEqual(weights.moduleLayers.length);
      }),
    );
  });

  it('say which option would make them smaller, where one would', () => {
    const by = (optimalAdapterSize: number, maxAdapterSize: number) =>
      pageSizes(TINY_BASE, { optimalAdapterSize, maxAdapterSize });
    expect([by(1, 64), by(8, 1), by(1, 1)].map(({ sizedBy }) => sizedBy)).toEqual([
      'maxAdapterSize',
      'optimalAdapterSize',
      null,
    ]);
    const why = (sizes: ReturnType<typeof by>) => () => cachePages({ hostCacheSize: 9 }, sizes, 10 ** 9);
    expect(why(by(8, 1))).toThrow(
      /hostCacheSize is 9; a page takes \d+ bytes \(less with a lower peftCacheManagerConfig\.optimalAdapterSize\), and adapters need at least one page\.$/,
    );
    expect(why(by(1, 1))).toThrow(/hostCacheSize is 9; a page takes \d+ bytes, and adapters need/);
  });

  it('are refused for a model that has no modules to change', () => {
    const encoder = { ...TINY_BASE, architecture: 'bert', encoder: {} } as unknown as typeof TINY_BASE;
    expect(() => pageSizes(encoder, {})).toThrow(
      'LoRA adapters are refused: the model bert has no modules that an adapter could change.',
    );
  });
});

describe('caches', () => {
  const sizes = pageSizes(TINY_BASE, {});
  const { bytesPerPage, rowsPerPage, width } = sizes;

  it('have the pages that fit, by bytes or by rows, and rows override', () => {
    const bytes = { hostCacheSize: 5 * bytesPerPage + 1, deviceCachePercent: 0.5 };
    expect(cachePages(bytes, sizes, 7 * bytesPerPage)).toEqual({ host: 5, device: 3 });
    const rows = { numHostModuleLayer: 4 * rowsPerPage, numDeviceModuleLayer: 2 * rowsPerPage + 1 };
    expect(cachePages({ ...bytes, ...rows }, sizes, 0)).toEqual({ host: 4, device: 2 });
    expect(cachePages({}, sizes, 2 ** 32).host).toBe(Math.floor(2 ** 30 / bytesPerPage));
    expect([hostCacheBytes({}, sizes), hostCacheBytes(rows, sizes)]).toEqual([
      2 ** 30,
      16 * rowsPerPage * width,
    ]);
  });

  it('ask the executor for a slot for each page, within a bound', () => {
    const { rowsPerPage, bytesPerPage } = sizes;
    const room = (pages: number, maxAdapters?: number) =>
      adapterRoom(
        TINY_BASE,
        {
          hostCacheSize: 9 * bytesPerPage,
          numDeviceModuleLayer: pages * rowsPerPage,
          ...(maxAdapters === undefined ? {} : { maxAdapters }),
        },
        sizes,
        0,
      );
    const options = (...args: Parameters<typeof room>) => slotOptions(room(...args));
    expect(options(3)).toEqual({ maxAdapters: 3, maxLoraRank: 64 });
    expect(options(10 ** 6).maxAdapters).toBe(MAX_ADAPTER_SLOTS);
    expect([options(3, 2).maxAdapters, options(3, 5).maxAdapters]).toEqual([2, 3]);
    expect(roomOf(room(3, 2))).toEqual({
      maxAdapters: 2,
      maxRank: 64,
      maxBytes: 3 * bytesPerPage,
      hostPages: 9,
      devicePages: 3,
      width: sizes.width,
      rowsPerPage,
      rankUnit: 1,
    });
  });
});
