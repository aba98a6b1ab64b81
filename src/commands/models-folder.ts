import { HubError } from '../errors/user-errors.js';
import { hubSettings } from '../hub/settings.js';
import { isLoopbackName } from '../server/web/access/loopback.js';
import type { Config } from '../settings/config.js';
import { demoModelPath } from '../settings/demo-model.js';

/** The folder from which models are loaded when they are asked for. */
export interface ModelsFolder {
  path: string;
  /** It is the hub's cache, which other programs use too: no client deletes models of it. */
  isShared: boolean;
}

/**
 * The folder of `--models-dir`. Of a server for which nothing was named it is the hub's cache, for this machine alone: other machines
 * would reach models that were not offered to them. null: there is none.
 */
export function modelsFolder({ models, modelsDir, modelRepository, host }: Config): ModelsFolder | null {
  if (modelsDir !== undefined) return { path: modelsDir, isShared: false };
  const isBare = models.length === 1 && models[0]!.model === demoModelPath() && modelRepository === undefined;
  if (!isBare || !isLoopbackName(host.includes(':') ? `[${host}]` : host)) return null;
  try {
    return { path: hubSettings().cacheFolder, isShared: true };
  } catch (error) {
    // A wrong variable of the hub keeps the demo model from nothing.
    if (error instanceof HubError) return null;
    throw error;
  }
}
