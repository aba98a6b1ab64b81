// Makes the OpenAPI document of all routes, and puts it where the built modules make it otherwise:
//
//   .dist-next/src/server/app/documentation/packed-description.js    a function that returns the document
//
// Run after tsc, and before tools/bundle-cli.mjs takes the module into the command line. A server only leaves out the routes
// that it does not have (description.ts).
import { rmSync, writeFileSync } from 'node:fs';

const module = new URL('../.dist-next/src/server/app/documentation/packed-description.js', import.meta.url);
const { packedDescription } = await import(module.href);
const packed = await packedDescription();
writeFileSync(module, `export const packedDescription = async () => '${packed}';\n`);
rmSync(new URL(`${module.href}.map`), { force: true });
