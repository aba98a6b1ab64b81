import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/**
 * The OpenAPI document of all routes, as JSON packed by gzip in base64. Making it takes 150 ms of a thread: the build
 * (tools/pack-description.mjs) calls this function once, and puts its result in the place of this module. Only a checkout's
 * sources make the document when it is asked for.
 */
export async function packedDescription(): Promise<string> {
  const [{ openApiDocument }, { ALL_ROUTES }, { skeinVersion }] = await Promise.all([
    import('./open-api/open-api.js'),
    import('../routes/index.js'),
    import('../../../../base/package-info.js'),
  ]);
  const document = await openApiDocument(ALL_ROUTES, skeinVersion());
  return (await promisify(gzip)(JSON.stringify(document), { level: 9 })).toString('base64');
}
