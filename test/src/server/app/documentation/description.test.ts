import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { describeRoutes } from '../../../../../src/server/app/documentation/description.js';
import { openApiDocument } from '../../../../../src/server/app/documentation/open-api/open-api.js';
import { packedDescription } from '../../../../../src/server/app/documentation/packed-description.js';
import { ALL_ROUTES } from '../../../../../src/server/app/routes/index.js';
import type { Route } from '../../../../../src/server/web/route.js';

const BUILT = new URL(
  '../../../../../dist/src/server/app/documentation/packed-description.js',
  import.meta.url,
);

const unpacked = (packed: string) => JSON.parse(gunzipSync(Buffer.from(packed, 'base64')).toString());

describe('the description of some routes', () => {
  it.each<[string, readonly Route[]]>([
    ['all', ALL_ROUTES],
    ['one of two methods of a path', ALL_ROUTES.filter(({ method }) => method !== 'delete')],
    ['a single one', ALL_ROUTES.slice(0, 1)],
    ['none', []],
  ])('has what the generator makes of them: %s', async (_, routes) => {
    const made = JSON.parse(JSON.stringify(await openApiDocument(routes, '1.2.3')));
    expect(JSON.parse(await describeRoutes(routes, '1.2.3'))).toEqual({
      ...made,
      components: { parameters: {}, schemas: {}, ...made.components },
    });
  });
});

it('is built from these sources: npm run build:ts puts it into dist', async () => {
  const built = (await import(BUILT.href)) as { packedDescription: typeof packedDescription };
  // The build's module has the text itself.
  expect(built.packedDescription.toString()).toContain(await built.packedDescription());
  expect(unpacked(await built.packedDescription())).toEqual(unpacked(await packedDescription()));
});
