import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../base/package-info.js';

/** What clients ask for where the model that comes with the package is served. */
export const DEMO_MODEL_NAME = 'gosling';

/** The folder of the model that comes with the package: a small teller of stories, for who has named no model yet. */
export function demoModelPath(): string | null {
  const path = join(packageRoot(), 'models/demo/gosling');
  return existsSync(join(path, 'config.json')) ? path : null;
}
