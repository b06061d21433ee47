"""scikit-learn with array_api_dispatch: estimators and metrics give equal results for tensors and NumPy's arrays."""

import pytest
import sklearn
from ecosystem_data import LABELS, X, Y, same, tensors
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, model_selection, preprocessing

CALLS = {
    "StandardScaler": lambda x, y, k: preprocessing.StandardScaler().fit_transform(x), "MinMaxScaler": lambda x, y, k: preprocessing.MinMaxScaler().fit_transform(x),
    "MaxAbsScaler": lambda x, y, k: preprocessing.MaxAbsScaler().fit_transform(x), "Normalizer": lambda x, y, k: preprocessing.Normalizer().fit_transform(x),
    "Binarizer": lambda x, y, k: preprocessing.Binarizer().fit_transform(x), "PolynomialFeatures": lambda x, y, k: preprocessing.PolynomialFeatures(2).fit_transform(x),
    "KernelCenterer": lambda x, y, k: preprocessing.KernelCenterer().fit_transform(x @ x.T), "LabelEncoder": lambda x, y, k: preprocessing.LabelEncoder().fit_transform(k),
    "PCA": lambda x, y, k: abs(decomposition.PCA(2, svd_solver="full").fit_transform(x)), "Ridge": lambda x, y, k: linear_model.Ridge(solver="svd").fit(x, y).predict(x),
    "LinearDiscriminantAnalysis": lambda x, y, k: discriminant_analysis.LinearDiscriminantAnalysis().fit(x, k).predict(x),
    "cross_val_predict": lambda x, y, k: model_selection.cross_val_predict(linear_model.Ridge(solver="svd"), x, y),
    "train_test_split": lambda x, y, k: model_selection.train_test_split(x, random_state=0), "accuracy": lambda x, y, k: metrics.accuracy_score(k, 1 - k),
    "f1": lambda x, y, k: metrics.f1_score(k, k), "zero_one": lambda x, y, k: metrics.zero_one_loss(k, k), "confusion": lambda x, y, k: metrics.confusion_matrix(k, 1 - k),
    "r2": lambda x, y, k: metrics.r2_score(y, y + 1), "mean_squared_error": lambda x, y, k: metrics.mean_squared_error(y, y + 1),
    "cosine_similarity": lambda x, y, k: metrics.pairwise.cosine_similarity(x), "euclidean_distances": lambda x, y, k: metrics.pairwise.euclidean_distances(x),
    "rbf_kernel": lambda x, y, k: metrics.pairwise.rbf_kernel(x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_scikit_learn(name):
    expected = CALLS[name](X.copy(), Y.copy(), LABELS.copy())
    with sklearn.config_context(array_api_dispatch=True):
        same(CALLS[name](*tensors(X, Y, LABELS)), expected, rtol=1e-6)
