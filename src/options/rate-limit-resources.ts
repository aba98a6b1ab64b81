import { UsageError } from '../errors/user-errors.js';

/** NAME:COUNT, or NAME:COUNT:DEVICE. */
const FORM = /^([^:]{1,128}):(\d{1,10})(?::(\d{1,10}))?$/;
/** As `count` of a configuration's resource. */
const MAX_COPIES = 2 ** 32 - 1;
const MAX_RESOURCES = 1024;

/**
 * Copies of resources by name, as --rate-limit-resource gives them. The processor is the one device, so that a resource of device 0 is the same as
 * one without a device. @throws UsageError
 */
export function rateLimitResources(texts: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  if (texts.length > MAX_RESOURCES)
    throw new UsageError(
      `--rate-limit-resource is given ${texts.length} times; at most ${MAX_RESOURCES} are taken.`,
    );
  for (const text of texts) {
    const [, name, count, device = '0'] = FORM.exec(text) ?? [];
    const refuse = (why: string) =>
      new UsageError(`--rate-limit-resource is ${JSON.stringify(text)}; ${why}.`);
    if (name === undefined) throw refuse('NAME:COUNT, or NAME:COUNT:0, is expected');
    if (Number(count) > MAX_COPIES) throw refuse(`the count may be at most ${MAX_COPIES}`);
    if (Number(device) !== 0) throw refuse('models run on the processor, which is device 0');
    if (counts.has(name)) throw refuse(`'${name}' is given already`);
    counts.set(name, Number(count));
  }
  return counts;
}
