/**
 * A module of dist/, by its source's type: `compiled<typeof import('../../src/index.js')>('src/index.js')`. Benches that start
 * worker threads import it, since a worker's thread runs JavaScript. `npm run bench` makes dist/ first.
 */
export async function compiled<M>(path: string): Promise<M> {
  return (await import(new URL(`../../dist/${path}`, import.meta.url).href)) as M;
}
