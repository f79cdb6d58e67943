import { createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { api, at, body, type Place, type Schemas } from '../api/client';
import { keys } from './keys';

export type EvaluationKey = Schemas['EvaluationKeyBody'];
export type ListedKey = Schemas['ListedKeyBody'];
export type NewKey = Schemas['CreateEvaluationKeyBody'];
export type KeyKind = NewKey['kind'];
export type KeyChange = Schemas['ChangeEvaluationKeyBody'];

/** Reads the evaluation keys of a tenant. */
export function useEvaluationKeys(place: () => Place) {
  return createQuery(() => ({
    queryKey: keys.evaluationKeys(place().tenant),
    queryFn: () => body(api.GET('/api/v1/evaluation-keys', { params: { header: at(place()) } })),
  }));
}

/** Creates a key. Only this response contains a server key, or a signing secret. */
export function useCreateKey(place: () => Place) {
  return useChange(place, (key: NewKey) =>
    body(api.POST('/api/v1/evaluation-keys', { params: { header: at(place()) }, body: key })),
  );
}

export function useChangeKey(place: () => Place) {
  return useChange(place, ({ keyId, fields }: { keyId: string; fields: KeyChange }) =>
    body(
      api.PATCH('/api/v1/evaluation-keys/{keyId}', { params: { header: at(place()), path: { keyId } }, body: fields }),
    ),
  );
}

/** Replaces a key, or the signing secret of a signed one. Only this response contains the new one. */
export function useRotateKey(place: () => Place) {
  return useChange(place, ({ keyId, endNow }: { keyId: string; endNow: boolean }) =>
    body(
      api.POST('/api/v1/evaluation-keys/{keyId}/rotate', {
        params: { header: at(place()), path: { keyId } },
        body: { endNow },
      }),
    ),
  );
}

export function useDeleteKey(place: () => Place) {
  return useChange(place, (keyId: string) =>
    body(api.DELETE('/api/v1/evaluation-keys/{keyId}', { params: { header: at(place()), path: { keyId } } })),
  );
}

function useChange<Change, Made>(place: () => Place, make: (change: Change) => Promise<Made>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: make,
    gcTime: 0, // secrets are not cached
    onMutate: place,
    onSettled: (_made, _error, _change, there) =>
      client.invalidateQueries({ queryKey: keys.evaluationKeys((there ?? place()).tenant) }),
  }));
}
