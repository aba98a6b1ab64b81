import * as z from 'zod';
import { modelInfoSchema, modelPageSchema } from '../../anthropic/answers.js';
import { modelSchema } from '../../openai/answers/models.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const IN_ANTHROPICS_FORM = ", in Anthropic's form where the request has an anthropic-version header.";

export function modelListResponses(): Responses {
  const list = z.object({ object: z.literal('list'), data: z.array(modelSchema) });
  return {
    200: jsonAnswer(`The models${IN_ANTHROPICS_FORM}`, z.union([list, modelPageSchema])),
    ...errors(401),
  };
}

export function modelResponses(): Responses {
  return {
    200: jsonAnswer(`The model${IN_ANTHROPICS_FORM}`, z.union([modelSchema, modelInfoSchema])),
    ...errors(401, 404),
  };
}
