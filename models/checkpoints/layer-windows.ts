import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';

type Windows = Pick<ModelConfig, 'slidingWindow' | 'layerWindows'>;

/** Fields of a ModelConfig for the windows of all layers. */
export function windowFields(windows: readonly (number | null)[]): Windows {
  const first = windows[0] ?? null;
  if (windows.every((window) => window === first)) return { slidingWindow: first };
  return { slidingWindow: null, layerWindows: [...windows] };
}

/** Windows of all layers, by the fields of a ModelConfig. */
export function windowsOfEach(
  { slidingWindow, layerWindows }: Windows,
  numLayers: number,
): (number | null)[] {
  return layerWindows ?? new Array<number | null>(numLayers).fill(slidingWindow);
}

/** The value of sliding_window, where null means no window. */
export function slidingWindow(config: ConfigFields, fallback: number | null): number | null {
  if (!config.has('sliding_window')) return fallback;
  if (config.raw('sliding_window') === undefined) return null;
  return config.integer('sliding_window', 1, LIMITS.positions);
}

/**
 * Windows of the layers: a layer has one where layer_types calls it sliding or, without layer_types, where `isSliding`
 * says so.
 */
export function windowsByType(
  config: ConfigFields,
  numLayers: number,
  window: number | null,
  isSliding: (layer: number) => boolean,
): (number | null)[] {
  const types = config.raw('layer_types');
  if (types === undefined)
    return Array.from({ length: numLayers }, (_, layer) => (isSliding(layer) ? window : null));
  const known = ['full_attention', 'sliding_attention'];
  if (!Array.isArray(types) || types.length !== numLayers || !types.every((type) => known.includes(type))) {
    throw config.error('layer_types', `${numLayers} times one of ${known.join(', ')}`);
  }
  return types.map((type) => (type === 'sliding_attention' ? window : null));
}
