import { HubError } from '../errors/user-errors.js';
import { hubSettings } from '../hub/settings.js';
import { isLoopbackName } from '../server/web/access/loopback.js';
import type { Config } from '../settings/config.js';
import { demoModelPath } from '../settings/demo-model.js';

/**
 * The configuration of a server for which no model was named: what it downloads goes into the cache of the hub, and models of the
 * cache are loaded when they are asked for. That is for this machine alone: other machines would reach models that nobody offered them.
 */
export function withCacheAsFolder(config: Config): Config {
  const { models, modelsDir, modelRepository, host } = config;
  const [only] = models;
  const isBare = models.length === 1 && only!.model === demoModelPath();
  if (!isBare || modelsDir !== undefined || modelRepository !== undefined) return config;
  if (!isLoopbackName(host.includes(':') ? `[${host}]` : host)) return config;
  try {
    return { ...config, modelsDir: hubSettings().cacheFolder };
  } catch (error) {
    // A wrong variable of the hub keeps the demo model from nothing.
    if (error instanceof HubError) return config;
    throw error;
  }
}
