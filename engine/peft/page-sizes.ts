import { input, type Name, option, says } from '../../base/named-text.js';
import type { PeftCacheConfig } from '../../callbacks/gpt-manager-options.js';
import {
  DEFAULT_DEVICE_CACHE_PERCENT,
  DEFAULT_HOST_CACHE_SIZE,
  DEFAULT_MAX_ADAPTER_SIZE,
  DEFAULT_OPTIMAL_ADAPTER_SIZE,
  MAX_ADAPTER_SLOTS,
} from '../../callbacks/options/peft-cache-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { AdapterRoom } from '../../callbacks/worker-messages.js';
import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';
import { baseModules, type ModuleShape } from '../../models/adapters/base-modules.js';
import type { ModelConfig } from '../../models/model-config.js';
import { pagesFor } from './page-pool.js';

const BYTES_PER_VALUE = Float32Array.BYTES_PER_ELEMENT;

/**
 * Pages of the adapter caches: rows of `width` values, one for each rank of the widest module of the checkpoint. A module-layer
 * takes whole rows, so that a narrow one takes fewer than its rank:
 *
 *   width 12    attn_q  in 4 + out 4, rank 3    24 values    2 rows
 *               mlp     in 4 + out 8, rank 3    36 values    3 rows
 *
 * A page has the rows of an adapter of rank optimalAdapterSize on all modules of all layers, and at least those of one module-layer
 * of rank maxAdapterSize. A, which is computed in whole vectors, counts with its rank rounded up to `rankUnit`, in both caches: where
 * optimalAdapterSize is a multiple of that, such an adapter fits exactly.
 */
export interface PageSizes {
  /** Values of a row. */
  width: number;
  rowsPerPage: number;
  bytesPerPage: number;
  /** Greatest rank of a module-layer. */
  maxAdapterSize: number;
  rankUnit: number;
  /** The option with which a page would be smaller; null: none makes it so. */
  sizedBy: 'optimalAdapterSize' | 'maxAdapterSize' | null;
}

export function pageSizes(
  model: ModelConfig,
  {
    optimalAdapterSize: optimal = DEFAULT_OPTIMAL_ADAPTER_SIZE,
    maxAdapterSize = DEFAULT_MAX_ADAPTER_SIZE,
  }: PeftCacheConfig,
  rankUnit = 1,
): PageSizes {
  const { shapes, names } = baseModules(model);
  const own = [...new Set(names.values())].map((id) => shapes.get(id)!);
  if (own.length === 0) {
    throw new ParameterError(
      'peftCacheManagerConfig',
      says`LoRA adapters are refused: the model ${model.architecture} has no modules that an adapter could change.`,
      'unsupported',
    );
  }
  const width = own.reduce((most, shape) => Math.max(most, shape.in + shape.out), 0);
  const rowsOf = (rank: number, { in: columns, out }: ModuleShape, unit: number) =>
    Math.ceil(valuesOf(rank, rank * columns, rank * out, unit) / width);
  const ofOptimal = own.reduce((sum, shape) => sum + rowsOf(optimal, shape, 1), 0) * model.numLayers;
  const ofGreatest = [...shapes.values()].reduce(
    (most, shape) => Math.max(most, rowsOf(maxAdapterSize, shape, rankUnit)),
    0,
  );
  const rowsPerPage = Math.max(ofOptimal, ofGreatest);
  const sizedBy = ofGreatest > ofOptimal ? 'maxAdapterSize' : optimal > 1 ? 'optimalAdapterSize' : null;
  return {
    width,
    rowsPerPage,
    bytesPerPage: rowsPerPage * width * BYTES_PER_VALUE,
    maxAdapterSize,
    rankUnit,
    sizedBy,
  };
}

/** Values of a module-layer as they are computed with. @param a and b values of its matrices */
function valuesOf(rank: number, a: number, b: number, rankUnit: number): number {
  return (a / rank) * Math.ceil(rank / rankUnit) * rankUnit + b;
}

/** Number of pages that an adapter takes, in either cache. */
export function pagesOfAdapter(
  { moduleLayers }: AdapterWeights,
  { width, rowsPerPage, rankUnit }: Pick<PageSizes, 'width' | 'rowsPerPage' | 'rankUnit'>,
): number {
  const rows = moduleLayers.map(({ rank, a, b }) =>
    Math.ceil(valuesOf(rank, a.length, b.length, rankUnit) / width),
  );
  return pagesFor(rows, rowsPerPage);
}

/** Pages of both caches. */
export interface CachePages {
  host: number;
  device: number;
}

/**
 * Pages of both caches by the options: a number of rows, or a size in memory.
 * @param availableBytes memory that is left once the model is loaded and the KV cache is allocated
 * @throws ParameterError if a cache has no room for a single page
 */
export function cachePages(config: PeftCacheConfig, sizes: PageSizes, availableBytes: number): CachePages {
  const {
    numHostModuleLayer = 0,
    numDeviceModuleLayer = 0,
    hostCacheSize = DEFAULT_HOST_CACHE_SIZE,
    deviceCachePercent = DEFAULT_DEVICE_CACHE_PERCENT,
  } = config;
  return {
    host:
      numHostModuleLayer > 0
        ? pagesByRows('numHostModuleLayer', numHostModuleLayer, sizes)
        : pagesByBytes('hostCacheSize', String(hostCacheSize), hostCacheSize, sizes),
    device:
      numDeviceModuleLayer > 0
        ? pagesByRows('numDeviceModuleLayer', numDeviceModuleLayer, sizes)
        : pagesByBytes(
            'deviceCachePercent',
            `${deviceCachePercent} of ${availableBytes} bytes that the model and the KV cache leave`,
            deviceCachePercent * availableBytes,
            sizes,
          ),
  };
}

function pagesByRows(field: string, rows: number, sizes: PageSizes): number {
  const { rowsPerPage } = sizes;
  const pages = Math.floor(rows / rowsPerPage);
  if (pages > 0) return pages;
  throw noPage(field, `${rows}; a page has ${rowsPerPage} rows`, sizes);
}

function pagesByBytes(field: string, given: string, bytes: number, sizes: PageSizes): number {
  const { bytesPerPage } = sizes;
  const pages = Math.floor(bytes / bytesPerPage);
  if (pages > 0) return pages;
  throw noPage(field, `${given}; a page takes ${bytesPerPage} bytes`, sizes);
}

function noPage(field: string, found: string, { sizedBy }: PageSizes): ParameterError {
  const full = `peftCacheManagerConfig.${field}`;
  const smaller =
    sizedBy === null ? '' : says` (less with a lower ${option(`peftCacheManagerConfig.${sizedBy}`)})`;
  return new ParameterError(
    full,
    says`${option(full)} is ${found}${smaller}, and adapters need at least one page.`,
  );
}

/** Most bytes that adapters take in the host cache. */
export function hostCacheBytes(
  { numHostModuleLayer = 0, hostCacheSize = DEFAULT_HOST_CACHE_SIZE }: PeftCacheConfig,
  { width }: PageSizes,
): number {
  return numHostModuleLayer > 0 ? numHostModuleLayer * width * BYTES_PER_VALUE : hostCacheSize;
}

/** Why an adapter that was read can never be used, however few others there are; null: it can. */
export function whyAdapterIsTooLarge(pages: number, { host, device }: CachePages): ParameterError | null {
  const most = Math.min(host, device);
  if (pages <= most) return null;
  const which = host <= device ? 'host' : 'device';
  return new ParameterError(
    'lora_weights',
    says`${input('lora_weights')} takes ${pages} pages; the ${which} cache of adapters has ${most} (${smallerCache({ host, device })}).`,
    'tooLong',
  );
}

/** The option of the cache that has fewer pages. */
export function smallerCache({ host, device }: CachePages): Name {
  return option(`peftCacheManagerConfig.${host <= device ? 'hostCacheSize' : 'deviceCachePercent'}`);
}

/** The base model of adapters, and the sizes of their caches. */
export interface LoadedAdapters {
  model: ModelConfig;
  sizes: PageSizes;
  pages: CachePages;
  /** Most adapters in one step. */
  maxSlots: number;
}

/** @param availableBytes as for cachePages @throws ParameterError as cachePages */
export function adapterRoom(
  model: ModelConfig,
  config: PeftCacheConfig,
  sizes: PageSizes,
  availableBytes: number,
): LoadedAdapters {
  const pages = cachePages(config, sizes, availableBytes);
  const maxSlots = Math.min(pages.device, config.maxAdapters ?? MAX_ADAPTER_SLOTS);
  return { model, sizes, pages, maxSlots };
}

/** The room for adapters that is reported to hosts. */
export function roomOf({ sizes, pages, maxSlots }: LoadedAdapters): AdapterRoom {
  return {
    maxAdapters: maxSlots,
    maxRank: sizes.maxAdapterSize,
    maxBytes: Math.min(pages.host, pages.device) * sizes.bytesPerPage,
    hostPages: pages.host,
    devicePages: pages.device,
    width: sizes.width,
    rowsPerPage: sizes.rowsPerPage,
    rankUnit: sizes.rankUnit,
  };
}

/** Options of an executor with room for these adapters. */
export function slotOptions({
  sizes,
  maxSlots,
}: LoadedAdapters): Record<'maxAdapters' | 'maxLoraRank', number> {
  return { maxAdapters: maxSlots, maxLoraRank: sizes.maxAdapterSize };
}
