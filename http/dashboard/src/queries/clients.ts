import { createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { api, at, body, type Place, type Schemas } from '../api/client';
import { keys } from './keys';

export type Client = Schemas['ClientBody'];
export type NewClient = Schemas['CreateClientBody'];

/** Reads the OAuth clients of a tenant, which only its admins may see. */
export function useClients(place: () => Place, enabled: () => boolean = () => true) {
  return createQuery(() => ({
    queryKey: keys.clients(place().tenant),
    queryFn: () => body(api.GET('/api/v1/oauth/clients', { params: { header: at(place()) } })),
    enabled: enabled(),
  }));
}

const mostClients = 50; // that the metrics name

/** Reads when clients evaluated last, by id, in the last 30 days and in all environments. */
export function useClientUse(place: () => Place) {
  return createQuery(() => ({
    queryKey: [...keys.usage(place().tenant), 'clients'],
    queryFn: async () => {
      const { clients } = await body(
        api.GET('/api/v1/tenants/{tenantId}/metrics', {
          params: { path: { tenantId: place().tenant }, query: { interval: 'day' } },
        }),
      );
      const last = new Map(clients.map(({ clientId, lastSeenAt }) => [clientId, lastSeenAt]));
      return { last, complete: clients.length < mostClients };
    },
  }));
}

/** Creates a client. Only this response contains its secret. */
export function useCreateClient(place: () => Place) {
  return useChange(place, (client: NewClient) =>
    body(api.POST('/api/v1/oauth/clients', { params: { header: at(place()) }, body: client })),
  );
}

/** Gives a client a new secret. Only this response contains it. */
export function useRotateClient(place: () => Place) {
  return useChange(place, (clientId: string) =>
    body(api.POST('/api/v1/oauth/clients/{clientId}/rotate', { params: { header: at(place()), path: { clientId } } })),
  );
}

export function useDeleteClient(place: () => Place) {
  return useChange(place, (clientId: string) =>
    body(api.DELETE('/api/v1/oauth/clients/{clientId}', { params: { header: at(place()), path: { clientId } } })),
  );
}

function useChange<Change, Made>(place: () => Place, make: (change: Change) => Promise<Made>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: make,
    gcTime: 0, // secrets are not cached
    onMutate: place,
    onSettled: (_made, _error, _change, there) =>
      client.invalidateQueries({ queryKey: keys.clients((there ?? place()).tenant) }),
  }));
}
