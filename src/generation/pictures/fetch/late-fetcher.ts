import type { PictureSources } from '../picture-files.js';
import type { FetcherOptions, PictureFetcher } from './picture-fetcher.js';

/** The way to pictures at addresses of each API key; '' where there are none. What fetches them is loaded with the first address. */
export function lateFetcher(
  options: Partial<FetcherOptions> = {},
): (key: string) => NonNullable<PictureSources['fetched']> {
  let loaded: Promise<PictureFetcher> | null = null;
  return (key) => async (named, loading) => {
    loaded ??= import('./picture-fetcher.js').then((module) => new module.PictureFetcher(options));
    return (await loaded).of(key)(named, loading);
  };
}
