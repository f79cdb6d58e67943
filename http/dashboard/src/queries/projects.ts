import { createMutation, createQuery, useQueryClient } from '@tanstack/svelte-query';
import { api, at, body, type Place, type Schemas } from '../api/client';
import { keys } from './keys';

export type Project = Schemas['ProjectBody'];

/** The editable fields of a project. */
export type ProjectText = Pick<Project, 'name' | 'description' | 'color'>;

/** Reads the projects of a tenant. */
export function useProjects(place: () => Place) {
  return createQuery(() => ({
    queryKey: keys.projects(place().tenant),
    queryFn: () => body(api.GET('/api/v1/projects', { params: { header: at(place()) } })),
  }));
}

/** Reads the project of a flag, if it has one. */
export function useProjectOf(place: () => Place, id: () => string | null) {
  return createQuery(() => ({
    queryKey: [...keys.projects(place().tenant), id()],
    queryFn: () =>
      body(
        api.GET('/api/v1/projects/{projectId}', {
          params: { path: { projectId: id()! }, header: { 'X-Tenant-ID': place().tenant } },
        }),
      ),
    enabled: id() !== null,
    staleTime: 60_000,
  }));
}

/** Creates a project, or changes the one with the given id. */
export function useSaveProject(place: () => Place) {
  return useChange(place, ({ id, ...project }: ProjectText & { id?: string }) =>
    body<Project>(
      id === undefined
        ? api.POST('/api/v1/projects', { params: { header: at(place()) }, body: project })
        : api.PATCH('/api/v1/projects/{projectId}', {
            params: { header: at(place()), path: { projectId: id } },
            body: project,
          }),
    ),
  );
}

/** Deletes a project that has no flags. */
export function useDeleteProject(place: () => Place) {
  return useChange(place, (projectId: string) =>
    body(api.DELETE('/api/v1/projects/{projectId}', { params: { header: at(place()), path: { projectId } } })),
  );
}

function useChange<Change, Made>(place: () => Place, make: (change: Change) => Promise<Made>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: make,
    onMutate: place,
    onSettled: (_made, _error, _change, there) =>
      client.invalidateQueries({ queryKey: keys.projects((there ?? place()).tenant) }),
  }));
}
