// Compiles the TypeScript when the package is installed or packed from a checkout. `npx skein` in a checkout
// runs this too, each time it links the checkout again: what is compiled then stays as it is, since a server
// may be running from it. Types are not checked, which takes most of the compiler's time: `npm run typecheck`
// and `npm test` check them, and what is emitted is the same.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const isBuilt = existsSync(new URL('../dist/bin/skein.js', import.meta.url));
if (process.env.npm_command !== 'exec' || !isBuilt) {
  const { status } = spawnSync('npm', ['run', 'build:ts'], {
    stdio: 'inherit',
    env: { ...process.env, UNCHECKED_TYPES: '1' },
  });
  process.exitCode = status ?? 1;
}
