import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readTokenizerFiles, Tokenizer } from '../../../../models/tokenizer/index.js';
import { NOW } from '../../../models/jinja/render.js';
import { gptOssTokenizer, templatesFolder } from '../../../support/published-templates.js';
import { readGolden } from '../../generation/harmony/streams.js';
import { renderedCodec } from '../../support/rendered-codec.js';
import { say, toyServer } from '../../support/toy-server.js';
import { harmonyBody } from './harmony-body.js';

const { conversations, schema } = readGolden();

/** The schema of the golden without what the template writes otherwise than openai-harmony. */
const withoutDefaults = JSON.parse(
  JSON.stringify(schema, (key, value) => (key === 'default' ? undefined : value)),
) as object;

describe.skipIf(gptOssTokenizer === null)(
  "prompts of gpt-oss by the model's own tokenizer and template",
  () => {
    let tokenizer: Tokenizer;
    beforeAll(async () => {
      tokenizer = new Tokenizer(await readTokenizerFiles(gptOssTokenizer!));
    });

    it.each(conversations)('have the token ids of openai-harmony: $name', async (one) => {
      const source = readFileSync(join(templatesFolder!, 'llama-cpp--openai-gpt-oss-120b.jinja'), 'utf8');
      const codec = renderedCodec(source, () => NOW, tokenizer);
      const model = { codec, vocabSize: tokenizer.vocabSize, maxInputLen: 10_000, maxSeqLen: 12_000 };
      const toy = toyServer(() => say('x'), { model });
      const response = await toy.post('/v1/chat/completions', harmonyBody(one, withoutDefaults));
      expect(response.status, await response.text()).toBe(200);
      expect([...toy.engine.requests[0]!.promptTokens]).toEqual(one.ids);
    });
  },
);
