import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../base/package-info.js';

/** Name that clients ask for where the model in the package is served. */
export const DEMO_MODEL_NAME = 'gosling';

/**
 * Folder of the model in the package, a small teller of stories for users who name no model; null where the package has
 * none.
 */
export function demoModelPath(): string | null {
  const path = join(packageRoot(), 'models/demo/gosling');
  return existsSync(join(path, 'config.json')) ? path : null;
}
